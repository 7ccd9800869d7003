/** A Prometheus metric. */
export type MetricInfo = {
  readonly name: string
  /** Shown by Prometheus and in docs/metrics.md. */
  readonly help: string
  readonly labelNames?: readonly string[]
}
