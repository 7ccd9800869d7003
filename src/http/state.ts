import { createMetrics, type Metrics } from './metrics.ts'
import type { Service } from './service.ts'

/** What all paths of one service share while it runs. */
export type State = {
  readonly metrics: Metrics
  /** Requests that verify something now. */
  verifying: number
  /** Requests with an Idempotency-Key that are being answered now. */
  readonly answering: Set<string>
  /** When keys were used since that was last written, epoch ms by key. */
  readonly touched: Map<string, number>
}

const states = new WeakMap<Service, State>()

export function stateOf(service: Service): State {
  const known = states.get(service)
  if (known !== undefined) return known
  const state: State = {
    metrics: createMetrics(service),
    verifying: 0,
    answering: new Set(),
    touched: new Map(),
  }
  states.set(service, state)
  return state
}
