package com.example.asktell;

import java.util.random.RandomGenerator;

/**
 * The sparse vector technique on 100 queries with answers 0 or 1, of which 10 are 1: the example
 * of Avent et al., "Automatic Discovery of Privacy-Utility Pareto Fronts" (PoPETs 2020, §3.3). It
 * stands for a training.
 */
final class SparseVector {
  private static final int QUERIES = 100;
  private static final int POSITIVES = 10;

  private SparseVector() {}

  /**
   * Runs the mechanism once and returns its error 1 − F₁.
   *
   * @param cutoff positive answers after which it stops, at least 1
   * @param noiseScale noise, shared by the threshold and the queries; positive
   */
  static double error(long cutoff, double noiseScale, RandomGenerator random) {
    double share = Math.cbrt(2.0 * cutoff);
    double threshold = 0.5 + noiseScale / (1 + share) * laplace(random);
    int selected = 0;
    int truePositives = 0;
    int left = POSITIVES;
    for (int i = 0; i < QUERIES && selected < cutoff; i++) {
      // The positives left are spread evenly over the queries left.
      int answer = random.nextInt(QUERIES - i) < left ? 1 : 0;
      left -= answer;
      if (answer + noiseScale * share / (1 + share) * laplace(random) >= threshold) {
        selected++;
        truePositives += answer;
      }
    }
    return 1 - 2.0 * truePositives / (selected + POSITIVES);
  }

  /** Draws from the Laplace distribution of mean 0 and scale 1. */
  private static double laplace(RandomGenerator random) {
    double x = random.nextExponential();
    return random.nextBoolean() ? x : -x;
  }
}
