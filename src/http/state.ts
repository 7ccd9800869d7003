import { createTouches, type Touches } from './guard/touches.ts'
import type { Service } from './service.ts'
import { createMetrics, type Metrics } from './watch/metrics.ts'

/** What all paths of one service share while it runs. */
export type State = {
  readonly metrics: Metrics
  /** Requests that verify something now. */
  verifying: number
  /** Requests with an Idempotency-Key that are being answered now. */
  readonly answering: Set<string>
  /** When keys were last used. */
  readonly touches: Touches
}

const states = new WeakMap<Service, State>()

export function stateOf(service: Service): State {
  const known = states.get(service)
  if (known !== undefined) return known
  const state: State = {
    metrics: createMetrics(service),
    verifying: 0,
    answering: new Set(),
    touches: createTouches(service),
  }
  states.set(service, state)
  return state
}
