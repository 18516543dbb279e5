# nix run 'git+URL?dir=packaging/nix' -- test HOST
{
  description = "Measure network paths and find what limits them";
  inputs.nixpkgs.url = "nixpkgs/nixos-unstable";

  outputs = { self, nixpkgs }:
    let
      source = ../..;
      workspace = (nixpkgs.lib.importTOML "${source}/Cargo.toml").workspace.package;
      package = system: nixpkgs.legacyPackages.${system}.rustPlatform.buildRustPackage {
        pname = "linerate";
        inherit (workspace) version;
        src = source;
        cargoLock.lockFile = "${source}/Cargo.lock";
        cargoBuildFlags = [ "-p" "linerate-cli" ];
        # The tests need network namespaces and the originals.
        doCheck = false;
        meta = {
          description = "Measure network paths and find what limits them";
          license = with nixpkgs.lib.licenses; [ mit asl20 ];
          mainProgram = "linerate";
        };
      };
    in {
      packages = nixpkgs.lib.genAttrs [ "x86_64-linux" "aarch64-linux" ] (system: { default = package system; });
    };
}
