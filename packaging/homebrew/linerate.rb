# brew install --HEAD ./linerate.rb. A tap adds `url` with the tag of a release and its revision.
class Linerate < Formula
  desc "Measure network paths and find what limits them"
  homepage "https://linerate.invalid"
  license any_of: ["MIT", "Apache-2.0"]
  head "https://linerate.invalid/linerate.git", branch: "main"

  depends_on "rust" => :build
  depends_on :linux

  def install
    system "cargo", "install", *std_cargo_args(path: "crates/faces/cli")
    system bin/"linerate", "generate", "man", "--dir", man
    generate_completions_from_executable(bin/"linerate", "generate", "completions")
  end

  test do
    system bin/"linerate", "try"
  end
end
