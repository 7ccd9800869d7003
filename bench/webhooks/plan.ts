/** What is measured. */
export type Plan = {
  readonly endpoints: number
  readonly events: number
  /** Events a second; null: all of them are there before anything is sent. */
  readonly perSecond: number | null
}

/** The first endpoint takes requests and never answers, the second answers late; the others are healthy. */
export type Manner = 'dead' | 'slow' | 'healthy'

export const mannerOf = (endpoint: number): Manner =>
  (['dead', 'slow'] as const)[endpoint] ?? 'healthy'

export const UNHEALTHY = 2
export const SLOW_MS = 1_000
/** Requests that an endpoint may have under way. */
export const CONNECTIONS_MAX = 4

/** Where the endpoints are, and who certified them. */
export type Places = { readonly urls: readonly string[]; readonly ca: string }

/** What came in at the healthy ones, and the most connections at once that one of each kind had. */
export type Received = {
  /** Different events at each, added up. */
  readonly events: number
  /** Requests beyond them. */
  readonly repeated: number
  /** From the time in the event to the end of its request. */
  readonly latencyMs: { readonly p50: number; readonly p95: number; readonly p99: number }
  /** From the first request to the last. */
  readonly seconds: number
  readonly connectionsMost: Readonly<Record<Manner, number>>
}

/** What a sender is told. */
export type Errand = { readonly plan: Plan; readonly places: Places; readonly folder: string }

/** What a sender cost since it began to send. */
export type Cost = { readonly cpuMs: number; readonly peakRssMiB: number }
