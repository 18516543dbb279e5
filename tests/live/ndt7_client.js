// Runs M-Lab's client of ndt7, unmodified, with what a browser has and Node.js lacks: workers and WebSocket.
// usage: ndt7_client.js FOLDER HOST:PORT. Writes a JSON object for each direction.
'use strict';
const fs = require('fs');
const path = require('path');
const {Worker: Thread} = require('worker_threads');

const [folder, server] = process.argv.slice(2);
const modules = path.join(path.resolve(folder), 'node_modules');
const BEFORE = `
const {parentPort} = require('worker_threads');
globalThis.WebSocket = require(${JSON.stringify(path.join(modules, 'ws'))});
globalThis.self = globalThis;
globalThis.postMessage = (data) => parentPort.postMessage(data);
parentPort.on('message', (data) => self.onmessage({data}));
`;

globalThis.Worker = class {
  constructor(file) {
    this.thread = new Thread(BEFORE + fs.readFileSync(file, 'utf8'), {eval: true});
    this.thread.on('message', (data) => this.onmessage({data}));
    this.thread.on('error', (error) => this.onmessage({data: {MsgType: 'error', Error: String(error)}}));
  }
  postMessage(data) {
    this.thread.postMessage(data);
  }
  terminate() {
    this.thread.terminate();
  }
};

const ndt7 = require(path.join(modules, '@m-lab/ndt7'));
const source = path.join(modules, '@m-lab/ndt7/src');
const complete = (direction) => (result) => console.log(JSON.stringify({direction, ...result}));
ndt7.test({
  server,
  protocol: 'ws',
  mlabDataPolicyInapplicable: true,
  downloadworkerfile: path.join(source, 'ndt7-download-worker.js'),
  uploadworkerfile: path.join(source, 'ndt7-upload-worker.js'),
}, {
  downloadComplete: complete('download'),
  uploadComplete: complete('upload'),
  error: (error) => {
    console.error(String(error));
    process.exitCode = 1;
  },
}).then((code) => process.exit(process.exitCode || code));
