export type Plan = {
  readonly endpoints: number
  readonly events: number
  /** Events per second; null writes all of them before the first request. */
  readonly perSecond: number | null
}

/** The first endpoint never responds, the second responds late, the others are healthy. */
export type EndpointKind = 'dead' | 'slow' | 'healthy'

export const kindOfEndpoint = (endpoint: number): EndpointKind =>
  (['dead', 'slow'] as const)[endpoint] ?? 'healthy'

export const UNHEALTHY = 2
export const SLOW_MS = 1_000
/** Maximum concurrent requests to an endpoint. */
export const CONNECTIONS_MAX = 4

/** URLs of the endpoints and their CA certificate. */
export type Targets = { readonly urls: readonly string[]; readonly ca: string }

/**
 * Measurements at the healthy endpoints, and the peak number of connections by kind of endpoint.
 */
export type Received = {
  /** Distinct events, summed over the endpoints. */
  readonly events: number
  /** Further requests for the same events. */
  readonly repeated: number
  /** From the timestamp of the event to the end of its request. */
  readonly latencyMs: { readonly p50: number; readonly p95: number; readonly p99: number }
  /** From the first request to the last one. */
  readonly seconds: number
  readonly connectionsPeak: Readonly<Record<EndpointKind, number>>
}

/** Options of a sender process. */
export type SenderOptions = {
  readonly plan: Plan
  readonly targets: Targets
  readonly folder: string
}

/** Cost of a sender since its start. */
export type Cost = { readonly cpuMs: number; readonly peakRssMiB: number }
