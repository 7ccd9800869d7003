import { SECOND, sleep } from '../../base/clock.ts'
import { messageOf } from '../../base/error.ts'
import type { Log } from '../../base/log.ts'
import type { Random } from '../../base/random.ts'
import type { NewMember } from '../../store/cluster/members.ts'
import {
  beat,
  buryDead,
  joinCluster,
  leaveCluster,
  liveMembers,
} from '../../store/cluster/members.ts'
import type { Database } from '../../store/database.ts'

/** So often a member is heard of. */
export const BEAT_MS = 3 * SECOND
/** Who was not heard of for so long is dead. */
export const DEAD_MS = 10 * SECOND
/** So often each looks for dead ones. */
const LOOK_MS = 2 * SECOND
/** Heard of less often than this, a member cannot tell who is dead. */
const TOUCH_MS = 5 * SECOND

export type MembershipParts = Omit<NewMember, 'id'> & {
  readonly database: Database
  readonly random: Random
  readonly log: Log
}

/** This process as one of those that share a database. */
export interface Membership {
  /** Under which it claims items and holds credits; another after it was buried. */
  readonly id: string
  /** Calls when the process finds itself buried: others have what it had in hand. Gives the function that ends that. */
  onLost(call: () => void): () => void
  /** Names of the egresses that some member asks by, as they were at the last look. */
  egresses(): readonly string[]
  /** Leaves: what it had in hand others may take at once. May be called twice. */
  stop(): Promise<void>
}

/** Joins; resolves when it may claim items. */
export async function startMembership(parts: MembershipParts): Promise<Membership> {
  const { database, random, log, role, name, version, egresses } = parts
  const { clock } = database
  const stopping = new AbortController()
  const listeners = new Set<() => void>()
  const newId = () => `mem_${random.token(20)}`
  const join = async () => {
    const member = { id: newId(), role, name, version, egresses }
    const at = await joinCluster(database, member)
    return { id: member.id, since: at, heardAt: at }
  }
  let me = await join()
  let names: readonly string[] = egresses
  const isOver = () => stopping.signal.aborted
  const beatOnce = async () => {
    const at = await beat(database, me.id)
    if (at === null) {
      log.warn('taken for dead; joining anew', { member: me.id })
      for (const call of [...listeners]) call()
      me = await join()
    } else {
      const since = at - me.heardAt > TOUCH_MS ? at : me.since
      me = { ...me, since, heardAt: at }
    }
  }
  const look = async () => {
    names = [...new Set((await liveMembers(database)).flatMap(member => member.egresses))].sort()
    const o = { by: me.id, since: me.since, deadMs: DEAD_MS, freshMs: TOUCH_MS }
    for (const member of await buryDead(database, o)) log.warn('a member is dead', { member })
  }
  const every = async (ms: number, run: () => Promise<void>) => {
    while (!isOver()) {
      await run().catch(error => log.error('membership', { why: messageOf(error) }))
      await sleep(clock, ms, stopping.signal)
    }
  }
  await look()
  const running = Promise.all([every(BEAT_MS, beatOnce), every(LOOK_MS, look)])
  return {
    get id() {
      return me.id
    },
    onLost(call) {
      listeners.add(call)
      return () => listeners.delete(call)
    },
    egresses: () => names,
    async stop() {
      stopping.abort()
      await running
      await leaveCluster(database, me.id)
    },
  }
}
