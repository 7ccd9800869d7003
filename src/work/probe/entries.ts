import type { Clock } from '../../base/clock.ts'
import type { Queue } from '../../queue/queue.ts'
import { type CrewTimings, DEFAULT_CREW_TIMINGS } from '../crew/crew-timings.ts'

/** One connection that an operator allows to one egress. */
export type Slot = { readonly operator: string; readonly egress: string }

/** Where the entries of an egress are: a process works on those of its own. */
export const probeKind = (egress: string) => `probe/${egress}`

/** The entry of one connection to an operator, counted from 0. */
export const slotKey = (operator: string, number: number) => `${operator}#${number}`

/** Which operator an entry is for. */
export const operatorOf = (key: string) => key.slice(0, key.lastIndexOf('#'))

/** Takes what is to be put into the queue. */
export interface Entries {
  /** The first slot of an operator and egress; due now when `dueAt`, epoch ms, is left out. Resolves when it is there. */
  put(slot: Slot, dueAt?: number): Promise<void>
  /** The first `count` of them, due now. */
  putAll(slot: Slot, count: number): Promise<void>
}

/** Puts each by itself, where that costs nothing. */
export function directEntries(queue: Queue): Entries {
  return {
    put: ({ operator, egress }, dueAt) => queue.put(probeKind(egress), slotKey(operator, 0), dueAt),
    putAll: ({ operator, egress }, count) =>
      queue.putAll(probeKind(egress), keysOf(operator, count)),
  }
}

type EntryTimings = Pick<CrewTimings, 'entriesMs' | 'roundMs'>

/**
 * Puts them in groups, those of the same second together: each statement costs a round trip to the
 * database.
 */
export function gatheredEntries(
  queue: Queue,
  clock: Clock,
  { entriesMs, roundMs }: EntryTimings = DEFAULT_CREW_TIMINGS,
): Entries {
  let groups = new Map<string, EntryGroup>()
  let flushed: Promise<void> | null = null
  const flush = async () => {
    const gone = groups
    groups = new Map()
    flushed = null
    await Promise.all(
      [...gone.values()].map(({ kind, keys, dueAt }) => queue.putAll(kind, [...keys], dueAt)),
    )
  }
  const add = (kind: string, keys: readonly string[], dueAt?: number) => {
    const name = `${dueAt} ${kind}`
    const group = groups.get(name) ?? { kind, dueAt, keys: new Set() }
    groups.set(name, group)
    for (const key of keys) group.keys.add(key)
    flushed ??= new Promise(resolve => clock.after(entriesMs, () => resolve(flush())))
    return flushed
  }
  return {
    put({ operator, egress }, dueAt = 0) {
      const due = dueAt > clock.now() ? Math.ceil(dueAt / roundMs) * roundMs : undefined
      return add(probeKind(egress), [slotKey(operator, 0)], due)
    },
    putAll: ({ operator, egress }, count) => add(probeKind(egress), keysOf(operator, count)),
  }
}

type EntryGroup = {
  readonly kind: string
  readonly dueAt: number | undefined
  readonly keys: Set<string>
}

const keysOf = (operator: string, count: number) =>
  Array.from({ length: count }, (_, number) => slotKey(operator, number))
