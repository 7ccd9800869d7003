import pLimit from 'p-limit'
import type { EndpointBackoff } from './endpoint-backoff.ts'

/** Turns at the same time. With CONNECTIONS_MAX for each and those of the slow there are 1,024 connections at most. */
export const TURNS_MAX = 192
/** Of these, those of endpoints that were slow when they were asked last: else a few hundred of them would hold up everybody. */
export const SLOW_TURNS_MAX = 64

export type DeliveryConcurrency = {
  /** Does something as soon as there is a place for a turn of this webhook. `isCrowded` tells whether others wait for its place. */
  run<T>(webhookId: string, act: (isBusy: () => boolean) => Promise<T>): Promise<T>
}

/** Places for turns, first come first served: the slow wait for one another only. */
export function createDeliveryConcurrency(
  endpoints: Pick<EndpointBackoff, 'isSlow'>,
): DeliveryConcurrency {
  const quick = pLimit(TURNS_MAX)
  const slow = pLimit(SLOW_TURNS_MAX)
  return {
    run(webhookId, act) {
      const slots = endpoints.isSlow(webhookId) ? slow : quick
      return slots(() => act(() => slots.pendingCount > 0))
    },
  }
}
