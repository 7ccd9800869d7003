import { type Clock, DAY, HOUR, MINUTE } from '../platform/clock.ts'
import { TtlMap } from '../platform/ttl-map.ts'
import type { ProbeResult } from './probe/mx-group-probe.ts'

/** What a mail server said of an address, kept for a while. */
export type CachedAnswer = {
  readonly probed: Omit<ProbeResult, 'dialogue' | 'egress'> & Partial<Pick<ProbeResult, 'egress'>>
  /** Wall-clock time of the answer, epoch ms. */
  readonly at: number
}

/** Where definite answers are remembered: in this process by default, in the database for lists. */
export interface ResultCache {
  get(keys: readonly string[]): Promise<ReadonlyMap<string, CachedAnswer>>
  set(entries: ReadonlyMap<string, CachedAnswer>): Promise<void>
}

/** How long an answer counts as fresh, and how long it is kept at all, to stand in when asking again fails. */
type Ttl = { readonly freshMs: number; readonly keepMs: number }

const ACCEPTED: Ttl = { freshMs: DAY, keepMs: 7 * DAY }
/** The catch-all test came to nothing, perhaps for the moment: it is worth another question soon. */
const UNDECIDED: Ttl = { freshMs: 10 * MINUTE, keepMs: 7 * DAY }
const REJECTED: Ttl = { freshMs: 6 * HOUR, keepMs: 6 * HOUR }

/** Null for what must not be remembered: 4xx, silence, garbage and refusals of us say nothing of the address. */
export function ttlFor(probed: Pick<ProbeResult, 'answer' | 'catchAll'>): Ttl | null {
  if (probed.answer.kind === 'accepted') return probed.catchAll === null ? UNDECIDED : ACCEPTED
  return probed.answer.kind === 'rejected' ? REJECTED : null
}

export function isFresh({ probed, at }: CachedAnswer, now: number): boolean {
  const keep = ttlFor(probed)
  // A clock that was set back makes an entry from the future: better to ask again.
  return keep !== null && now >= at && now - at < keep.freshMs
}

/** Whether an answer may still stand in when asking again fails, or while it is asked again. */
export function isCached({ probed, at }: CachedAnswer, now: number): boolean {
  const keep = ttlFor(probed)
  return keep !== null && now - at < keep.keepMs
}

/** What may be kept of an answer: the facts, not the words of one conversation. */
export function toCacheEntry(
  { dialogue: _, ...probed }: ProbeResult,
  now: number,
): CachedAnswer | null {
  return ttlFor(probed) === null ? null : { probed, at: now }
}

export const noCache: ResultCache = {
  get: async () => new Map(),
  set: async () => {},
}

/** About 1 KB each. */
const ADDRESSES_MAX = 20_000

/** Remembers in this process, bounded. */
export function processCache(clock: Clock): ResultCache {
  const known = new TtlMap<CachedAnswer>({ sizeMax: ADDRESSES_MAX, clock })
  return {
    async get(keys) {
      const found = new Map<string, CachedAnswer>()
      for (const key of keys) {
        const cached = known.get(key)
        if (cached !== undefined) found.set(key, cached)
      }
      return found
    },
    async set(entries) {
      for (const [key, cached] of entries) {
        const keep = ttlFor(cached.probed)
        if (keep !== null) known.set(key, cached, keep.keepMs)
      }
    },
  }
}
