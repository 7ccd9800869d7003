import type { RateLimits } from '../../src/engine/rate-control/limit-table.ts'
import {
  mayStart,
  newState,
  onStarted,
  type RateState,
} from '../../src/engine/rate-control/rules.ts'
import type {
  PermitEnd,
  RateKey,
  RateStateHandle,
  SharedRateState,
} from '../../src/engine/rate-control/shared-state.ts'
import type { Clock } from '../../src/platform/clock.ts'

type Kept = { state: RateState; held: number; readonly watchers: Set<() => void> }

/** Paces that several share, kept in this process; `fault`, while set, is what whoever asks for a connection gets. */
export function fakePaceShare(clock: Clock) {
  const all = new Map<string, Kept>()
  const textOf = ({ operator, egress }: RateKey) => `${operator}|${egress}`
  const share: SharedRateState & { fault: Error | null; started: number } = {
    fault: null,
    started: 0,
    open(key, row) {
      const kept = all.get(textOf(key)) ?? { state: newState(row), held: 0, watchers: new Set() }
      all.set(textOf(key), kept)
      return keeperOf(kept, row)
    },
    refusal(key) {
      const refusal = all.get(textOf(key))?.state.refusal ?? null
      const leftMs = (refusal?.until ?? 0) - clock.now()
      return refusal === null || leftMs <= 0 ? null : { answer: refusal.answer, leftMs }
    },
  }
  const keeperOf = (kept: Kept, row: RateLimits): RateStateHandle => {
    const change: RateStateHandle['change'] = change => {
      kept.state = change(kept.state, clock.now())
      for (const call of [...kept.watchers]) call()
    }
    return {
      ...{
        reservedForOthers: () => 0,
        isSingleWaiting: false,
        now: () => clock.now(),
        change,
        note: change,
      },
      get state() {
        return kept.state
      },
      get sessions() {
        return kept.held
      },
      async acquire(signal): Promise<PermitEnd | null> {
        share.started++
        await Promise.resolve()
        if (share.fault !== null) throw share.fault
        if (signal.aborted || !mayStart(kept.state, row, clock.now(), kept.held)) return null
        kept.state = onStarted(kept.state, row, clock.now())
        kept.held++
        return () => {
          kept.held--
          for (const call of [...kept.watchers]) call()
        }
      },
      watch(call) {
        kept.watchers.add(call)
        return () => void kept.watchers.delete(call)
      },
    }
  }
  return share
}
