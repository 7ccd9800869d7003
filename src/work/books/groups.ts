import type { Clock } from '../../base/clock.ts'

/**
 * Written together: at most so many at first, or what came in so much time. A crash loses these, which nobody was
 * promised; a commit waits for the disk, and with more of them the service would do little else.
 */
const GROUP_MAX = 500
const GROUP_MS = 100

/** More than this in one transaction would keep others waiting. */
const WRITE_MAX = 1_000

/** A disk that is full is seldom so for long, and need not be asked more often. */
const RETRY_MS = 1_000

export type GroupParts<T> = {
  readonly clock: Clock
  /** Makes a group durable. `again`: it was tried before, and may be durable already in spite of the failure. */
  readonly write: (group: readonly T[], again: boolean) => Promise<void>
  /** A group could not be written; gives whether it is to be tried again. */
  readonly onFailure: (error: unknown, group: readonly T[], tries: number) => boolean
}

/** Takes things one by one and writes them in groups, later on, in their order; what fails is tried again. */
export interface Groups<T> {
  add(thing: T): void
  /** How many are not durable yet. */
  readonly waiting: number
  /** Why the last write failed; null: it did not. */
  readonly fault: unknown
  /** Resolves when all that was added is durable, or given up. */
  flushed(): Promise<void>
  /** Writes what there is, once more where that fails, and no longer waits for better times. */
  stop(): Promise<void>
}

export function createGroups<T>({ clock, write, onFailure }: GroupParts<T>): Groups<T> {
  const gathered: T[] = []
  /** The group that failed: it is tried again by itself, so that it can be told whether it was durable. */
  let failed: { group: T[]; tries: number } | null = null
  let inHand = 0
  let fault: unknown = null
  let writing: Promise<void> | null = null
  let cancelTimer: (() => void) | null = null

  const waiting = () => gathered.length + inHand
  const begin = (): Promise<void> => {
    cancelTimer?.()
    cancelTimer = null
    writing ??= writeNext().finally(() => {
      writing = null
      if (waiting() > 0) beginIn(fault === null ? GROUP_MS : RETRY_MS)
    })
    return writing
  }
  const beginIn = (delayMs: number) => {
    cancelTimer ??= clock.after(delayMs, () => void begin())
  }
  const writeNext = async () => {
    const { group, tries } = failed ?? { group: gathered.splice(0, WRITE_MAX), tries: 0 }
    if (group.length === 0) return
    inHand = group.length
    try {
      await write(group, tries > 0)
      done()
    } catch (error) {
      fault = error
      failed = { group, tries: tries + 1 }
      if (!onFailure(error, group, tries + 1)) done()
    }
  }
  const done = () => {
    inHand = 0
    failed = null
    fault = null
  }
  return {
    add(thing) {
      gathered.push(thing)
      if (gathered.length >= GROUP_MAX && fault === null && writing === null) void begin()
      else if (writing === null) beginIn(GROUP_MS)
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
