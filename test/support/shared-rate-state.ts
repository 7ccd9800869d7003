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

type Entry = { state: RateState; held: number; readonly watchers: Set<() => void> }

/** Shared rate states in memory; while `fault` is set, requests for a connection throw it. */
export function fakeSharedRates(clock: Clock) {
  const all = new Map<string, Entry>()
  const keyText = ({ operator, egress }: RateKey) => `${operator}|${egress}`
  const share: SharedRateState & { fault: Error | null; started: number } = {
    fault: null,
    started: 0,
    open(key, row) {
      const entry = all.get(keyText(key)) ?? { state: newState(row), held: 0, watchers: new Set() }
      all.set(keyText(key), entry)
      return handleFor(entry, row)
    },
    refusal(key) {
      const refusal = all.get(keyText(key))?.state.refusal ?? null
      const leftMs = (refusal?.until ?? 0) - clock.now()
      return refusal === null || leftMs <= 0 ? null : { answer: refusal.answer, leftMs }
    },
  }
  const handleFor = (entry: Entry, row: RateLimits): RateStateHandle => {
    const change: RateStateHandle['change'] = change => {
      entry.state = change(entry.state, clock.now())
      for (const call of [...entry.watchers]) call()
    }
    return {
      reservedForOthers: () => 0,
      isSingleWaiting: false,
      now: () => clock.now(),
      change,
      note: change,
      get state() {
        return entry.state
      },
      get sessions() {
        return entry.held
      },
      async acquire(signal): Promise<PermitEnd | null> {
        share.started++
        await Promise.resolve()
        if (share.fault !== null) throw share.fault
        if (signal.aborted || !mayStart(entry.state, row, clock.now(), entry.held)) return null
        entry.state = onStarted(entry.state, row, clock.now())
        entry.held++
        return () => {
          entry.held--
          for (const call of [...entry.watchers]) call()
        }
      },
      watch(call) {
        entry.watchers.add(call)
        return () => void entry.watchers.delete(call)
      },
    }
  }
  return share
}
