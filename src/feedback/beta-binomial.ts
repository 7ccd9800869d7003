/** Observations of one group: how many, and how many of them were correct. */
export type Cell = { readonly correct: number; readonly total: number }

/** Returns the mean of a Beta distribution whose prior has this mean and weight. */
export const posteriorMean = ({ correct, total }: Cell, mean: number, weight: number): number =>
  (correct + weight * mean) / (total + weight)

/**
 * Returns the logarithm of the likelihood of observations with a Beta prior, without the binomial
 * coefficient, which does not depend on the prior.
 */
export function logLikelihood({ correct, total }: Cell, mean: number, weight: number): number {
  const center = Math.min(1 - MEAN_MIN, Math.max(MEAN_MIN, mean))
  const a = weight * center
  const b = weight * (1 - center)
  return logBeta(a + correct, b + total - correct) - logBeta(a, b)
}

/** A prior of exactly 0 or 1 would make an observation impossible. */
const MEAN_MIN = 0.001

/**
 * Returns the geometric mean of candidates, weighted by their likelihoods, whose logarithms are
 * `logs`: without observations their middle, with many the most likely one.
 */
export function averageByLikelihood(
  candidates: readonly number[],
  logs: readonly number[],
): number {
  const sum = logSum(logs)
  return Math.exp(
    candidates.reduce(
      (total, candidate, index) => total + Math.exp((logs[index] ?? 0) - sum) * Math.log(candidate),
      0,
    ),
  )
}

/** Returns the logarithm of the sum of numbers that are given by their logarithms. */
export function logSum(logs: readonly number[]): number {
  const highest = Math.max(...logs)
  return highest + Math.log(logs.reduce((sum, log) => sum + Math.exp(log - highest), 0))
}

const logBeta = (a: number, b: number) => logGamma(a) + logGamma(b) - logGamma(a + b)

/** Stirling's series has an error below 1e-9 from here on. */
const STIRLING_MIN = 8

/** The logarithm of the gamma function, for positive numbers. */
export function logGamma(x: number): number {
  let product = 1
  let y = x
  for (; y < STIRLING_MIN; y++) product *= y
  const square = 1 / (y * y)
  const series = (1 / 12 - square * (1 / 360 - square * (1 / 1260 - square / 1680))) / y
  return (y - 0.5) * Math.log(y) - y + Math.log(2 * Math.PI) / 2 + series - Math.log(product)
}
