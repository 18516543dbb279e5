//! What options of the drop-in modes add to a test besides its report: a record, limits, the
//! terminal view. Without the products the command line refuses these options.

use linerate::Outcome;
use linerate::server::TestRecords;
use linerate_document::Output;
use linerate_model::EventSink;
use linerate_model::finding::Diagnosis;
use linerate_model::spec::ClientSpec;

/// Requests of a client besides its report.
#[cfg_attr(not(feature = "full"), expect(dead_code))]
pub(crate) struct Requests<'a> {
    /// The program in messages.
    pub program: &'a str,
    /// Labels of a record.
    pub record: Option<&'a str>,
    /// Limits.
    pub expect: Option<&'a str>,
    /// A terminal view shows the test.
    pub tui: bool,
    /// The report goes to a file.
    pub is_to_file: bool,
}

/// End of the test of a client.
#[cfg_attr(not(feature = "full"), expect(dead_code))]
pub(crate) struct Ended {
    pub outcome: Outcome,
    pub is_interrupted: bool,
    pub diagnosis: Option<Diagnosis>,
}

/// Runs the test of a client, whose report goes to `output`, with what it requests besides.
#[cfg(feature = "full")]
pub(crate) fn client(
    requests: &Requests<'_>,
    spec: &ClientSpec,
    output: Output,
    run: impl FnOnce(&mut dyn EventSink, Output) -> Ended,
) -> Outcome {
    use linerate::command_line;
    use linerate::expect::LimitedTest;
    use linerate::live::Live;
    use linerate::record::TestRecording;
    use linerate::view::View;
    use linerate_model::sink::Tee;

    use crate::{expect, record};

    let live = requests.tui.then(Live::default);
    let view = live.as_ref().and_then(View::open);
    let output = view
        .as_ref()
        .filter(|_| !requests.is_to_file)
        // A report that goes to a file does not disturb the view and is written at once.
        .map_or(output, View::output);
    let mut recording =
        record::of_drop_in(requests.record).map(|to| TestRecording::begin(to, spec));
    let limits = command_line::limits(requests.expect);
    let mut limited = limits.clone().map(LimitedTest::new);
    let mut shown = view.as_ref().and(live.as_ref()).map(Live::sink);

    let mut sinks = Tee(Tee(recording.as_mut(), limited.as_mut()), shown.as_mut());
    let ended = run(&mut sinks, output);
    // The terminal is restored before messages are written to it.
    if let Some(view) = view {
        view.close();
    }

    let finish = |recording: TestRecording| recording.finish(ended.is_interrupted, ended.diagnosis);
    record::report(recording.and_then(|recording| finish(recording).message));
    expect::missed_by_test(requests.program, limits.as_ref(), limited, ended.outcome)
}

/// Runs the test of a client, whose report goes to `output`.
#[cfg(not(feature = "full"))]
pub(crate) fn client(
    _: &Requests<'_>,
    _: &ClientSpec,
    output: Output,
    run: impl FnOnce(&mut dyn EventSink, Output) -> Ended,
) -> Outcome {
    run(&mut (), output).outcome
}

/// Serves, with records of the tests where the labels of one are given.
#[cfg(feature = "full")]
pub(crate) fn server<R>(
    record: Option<&str>,
    serve: impl FnOnce(Option<&dyn TestRecords>) -> R,
) -> R {
    use linerate::record::SessionRecords;

    use crate::record;

    let records = record::of_drop_in(record).map(SessionRecords::new);
    let served = serve(records.as_ref().map(|records| records as &dyn TestRecords));
    // Records are closed after the last test, so that the message counts all of them.
    record::report(records.and_then(SessionRecords::close));
    served
}

/// Serves.
#[cfg(not(feature = "full"))]
pub(crate) fn server<R>(_: Option<&str>, serve: impl FnOnce(Option<&dyn TestRecords>) -> R) -> R {
    serve(None)
}
