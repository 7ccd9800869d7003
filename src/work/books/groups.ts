import { breathe, type Clock } from '../../base/clock.ts'

/** More than this in one transaction would keep others waiting. */
const WRITE_MAX = 1_000

/** A disk that is full is seldom so for long, and need not be asked more often. */
const RETRY_MS = 1_000

/** After so many failed writes, about two seconds, who waits is told; what was added is still tried again. */
const WAITERS_TRIES = 3

/** What follows a failure: the group is tried again, each thing of it is tried by itself, or the group is given up. */
export type AfterFailure = 'retry' | 'split' | 'drop'

export type GroupParts<T> = {
  readonly clock: Clock
  /** Makes a group durable. `again`: it was tried before, and may be durable already in spite of the failure. */
  readonly write: (group: readonly T[], again: boolean) => Promise<void>
  /** A group could not be written. */
  readonly onFailure: (error: unknown, group: readonly T[], tries: number) => AfterFailure
}

/** Takes things one by one and writes all of one turn of the event loop together, in their order; what fails is tried again. */
export interface Groups<T> {
  /** Resolves when it is durable. Rejects with what keeps it from being written, though it may be tried again. */
  add(thing: T): Promise<void>
  /** How many are not durable yet. */
  readonly waiting: number
  /** Why the last write failed and is tried again; null: it did not. */
  readonly fault: unknown
  /** Resolves when all that was added is durable, or given up. */
  flushed(): Promise<void>
  /** Writes what there is, once more where that fails, and no longer waits for better times. */
  stop(): Promise<void>
}

type Added<T> = {
  readonly thing: T
  readonly resolve: () => void
  readonly reject: (error: unknown) => void
}

type Group<T> = { readonly added: readonly Added<T>[]; readonly tries: number }

export function createGroups<T>({ clock, write, onFailure }: GroupParts<T>): Groups<T> {
  const gathered: Added<T>[] = []
  /** Groups that failed: each is tried again by itself, so that it can be told whether it was durable. */
  const failed: Group<T>[] = []
  let inHand = 0
  let fault: unknown = null
  let writing: Promise<void> | null = null
  let isTurnPlanned = false
  let cancelTimer: (() => void) | null = null

  const waiting = () =>
    gathered.length + inHand + failed.reduce((sum, { added }) => sum + added.length, 0)
  const begin = (): Promise<void> => {
    cancelTimer?.()
    cancelTimer = null
    writing ??= writeNext().finally(() => {
      writing = null
      if (waiting() === 0) return
      if (fault === null) void beginNextTurn()
      else cancelTimer ??= clock.after(RETRY_MS, () => void begin())
    })
    return writing
  }
  const beginNextTurn = async () => {
    if (isTurnPlanned) return
    isTurnPlanned = true
    await breathe()
    isTurnPlanned = false
    if (writing === null && fault === null) await begin()
  }
  const writeNext = async () => {
    const group = failed.shift() ?? { added: gathered.splice(0, WRITE_MAX), tries: 0 }
    const { added, tries } = group
    if (added.length === 0) return
    inHand = added.length
    const things = added.map(({ thing }) => thing)
    try {
      await write(things, tries > 0)
      for (const { resolve } of added) resolve()
      fault = null
    } catch (error) {
      onFailed(error, { added, tries: tries + 1 }, onFailure(error, things, tries + 1))
    } finally {
      inHand = 0
    }
  }
  const onFailed = (error: unknown, { added, tries }: Group<T>, next: AfterFailure) => {
    fault = next === 'retry' ? error : null
    if (next === 'retry') failed.unshift({ added, tries })
    if (next === 'split') failed.unshift(...added.map(one => ({ added: [one], tries })))
    if (next === 'drop' || isTold()) for (const { reject } of added) reject(error)
    if (isTold()) for (const { reject } of gathered) reject(error)
  }
  /** Whether who waits is not kept waiting any longer. */
  const isTold = () => fault !== null && (failed[0]?.tries ?? 0) >= WAITERS_TRIES
  return {
    add(thing) {
      const added = new Promise<void>((resolve, reject) => {
        gathered.push({ thing, resolve, reject })
        if (isTold()) reject(fault)
      })
      // Not everybody waits.
      added.catch(() => {})
      if (writing === null && fault === null) void beginNextTurn()
      return added
    },
    get waiting() {
      return waiting()
    },
    get fault() {
      return fault
    },
    async flushed() {
      while (waiting() > 0) {
        if (fault === null || writing !== null) await begin()
        else await new Promise<void>(resolve => void clock.after(RETRY_MS, resolve))
      }
    },
    async stop() {
      await begin()
      for (let tries = 0; waiting() > 0 && tries < 2; ) {
        await begin()
        tries = fault === null ? 0 : tries + 1
      }
      cancelTimer?.()
      cancelTimer = null
    },
  }
}
