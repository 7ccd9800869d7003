import { type Clock, DAY } from '../../platform/clock.ts'
import { TtlMap } from '../../platform/ttl-map.ts'

const SERVERS_MAX = 20_000
/** How long an accepted recipient is asked again: mailboxes are rarely closed within a day. */
const WITNESS_MS = DAY
/**
 * Rejections in a row after which the witness of a server is asked again: one or two are common in
 * any list, and a server that counts them allows more.
 */
const REJECTED_IN_A_ROW_MAX = 3

/**
 * The names under which a server is known, the most specific first: its IP address, unless customers
 * share it, its host name, and the hosts of the same preference. They usually share their limits and
 * their mailboxes.
 */
export type ServerKeys = readonly string[]

/** A recipient that a server has answered. */
export type AnsweredRecipient = { readonly domain: string; readonly recipient: string }

/** The last recipient that a server accepted. */
export type Witness = AnsweredRecipient & {
  /** Whether the server ever rejected its witness, too. */
  readonly hasRejectedAll: boolean
}

type KnownWitness = {
  -readonly [K in keyof Witness]: Witness[K]
} & {
  /** Recipients that the server has rejected since then. */
  rejectedInARow: number
}

/**
 * The last accepted recipient of each server. After too many unknown recipients, some servers reject
 * everyone for a time; then they reject this one, too.
 */
export class Witnesses {
  readonly #known: TtlMap<KnownWitness>

  constructor(clock: Clock) {
    this.#known = new TtlMap({ sizeMax: SERVERS_MAX, clock })
  }

  /** Records that a server accepted a recipient, so that it does not reject everyone. */
  noteAccepted(server: ServerKeys, domain: string, recipient: string): void {
    const hasRejectedAll = this.#get(server)?.hasRejectedAll ?? false
    const witness = { domain, recipient, rejectedInARow: 0, hasRejectedAll }
    for (const key of server) this.#known.set(key, witness, WITNESS_MS)
  }

  /** Counts a rejection by a server that has a witness. */
  noteRejected(server: ServerKeys): void {
    const known = this.#get(server)
    if (known !== undefined) known.rejectedInARow++
  }

  /** Records that a server rejected its witness: it rejects everyone. */
  noteAllRejected(server: ServerKeys): void {
    const known = this.#get(server)
    if (known !== undefined) known.hasRejectedAll = true
  }

  /** Forgets the witness of a connection whose replies did not belong to their commands. */
  forget(server: ServerKeys): void {
    for (const key of server) this.#known.delete(key)
  }

  /**
   * Returns the witness of a server, to be asked again after so many rejections in a row of a
   * connection, of several ones, or of the hosts with its preference; null if there is none, or if
   * these are too few.
   */
  find(server: ServerKeys, rejectedInARow: number): Witness | null {
    const known = this.#get(server)
    if (known === undefined) return null
    const peers = this.#known.get(server.at(-1) ?? '') ?? known
    const count = Math.max(rejectedInARow, known.rejectedInARow, peers.rejectedInARow)
    const hasRejectedAll = known.hasRejectedAll || peers.hasRejectedAll
    return count >= (hasRejectedAll ? 1 : REJECTED_IN_A_ROW_MAX) ? known : null
  }

  #get(server: ServerKeys): KnownWitness | undefined {
    for (const key of server) {
      const known = this.#known.get(key)
      if (known !== undefined) return known
    }
    return undefined
  }
}
