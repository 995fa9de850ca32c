// The sparse vector technique on 100 queries with answers 0 or 1, of which 10 are 1: the
// example of Avent et al., "Automatic Discovery of Privacy-Utility Pareto Fronts" (PoPETs
// 2020, §3.3). It stands for a training.

const queries = 100;
const positives = 10;

/**
 * Runs the mechanism once and returns its error 1 − F₁.
 *
 * @param cutoff positive answers after which it stops, at least 1
 * @param noiseScale noise, shared by the threshold and the queries; positive
 */
export function sparseVectorError(cutoff: number, noiseScale: number): number {
  const share = Math.cbrt(2 * cutoff);
  const threshold = 0.5 + (noiseScale / (1 + share)) * laplace();
  let selected = 0;
  let truePositives = 0;
  let left = positives;
  for (let i = 0; i < queries && selected < cutoff; i++) {
    // The positives left are spread evenly over the queries left.
    const answer = Math.random() * (queries - i) < left ? 1 : 0;
    left -= answer;
    if (answer + ((noiseScale * share) / (1 + share)) * laplace() >= threshold) {
      selected++;
      truePositives += answer;
    }
  }
  return 1 - (2 * truePositives) / (selected + positives);
}

/** Draws from the Laplace distribution of mean 0 and scale 1. */
function laplace(): number {
  const x = -Math.log(1 - Math.random());
  return Math.random() < 0.5 ? x : -x;
}
