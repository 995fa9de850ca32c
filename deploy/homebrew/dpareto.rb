# "make release" fills in the version and the checksums of the archives.
class Dpareto < Formula
  desc "Finds the Pareto front of privacy and utility of differentially private training"
  homepage "https://github.com/dpareto/dpareto"
  version "@VERSION@"
  license "Apache-2.0"

  on_macos do
    on_arm do
      url "https://github.com/dpareto/dpareto/releases/download/v#{version}/dpareto-#{version}-darwin-arm64.tar.gz"
      sha256 "@darwin-arm64@"
    end
    on_intel do
      url "https://github.com/dpareto/dpareto/releases/download/v#{version}/dpareto-#{version}-darwin-amd64.tar.gz"
      sha256 "@darwin-amd64@"
    end
  end

  on_linux do
    on_arm do
      url "https://github.com/dpareto/dpareto/releases/download/v#{version}/dpareto-#{version}-linux-arm64.tar.gz"
      sha256 "@linux-arm64@"
    end
    on_intel do
      url "https://github.com/dpareto/dpareto/releases/download/v#{version}/dpareto-#{version}-linux-amd64.tar.gz"
      sha256 "@linux-amd64@"
    end
  end

  def install
    bin.install "dpareto"
    generate_completions_from_executable(bin/"dpareto", "completion")
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/dpareto version")
  end
end
