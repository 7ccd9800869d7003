declare module '../db/schema.ts' {
  interface Schema {
    member: MemberTable
    pace: PaceTable
    catch_all: CatchAllTable
    learned_reply: LearnedReplyTable
    witness: WitnessTable
    setting: SettingTable
  }
}

/** A process of the cluster. Times are by the database's clock, epoch ms. */
type MemberTable = {
  id: string
  role: MemberRole
  /** Display name: host and process. */
  name: string
  version: string
  /** JSON: names of its egresses. */
  egresses: string
  joined_at: number
  /** Time of its last heartbeat. */
  seen_at: number
}

/** `serve` also serves HTTP. */
export type MemberRole = 'serve' | 'worker'

/** Rate control state of an operator and egress, shared by all members. */
type PaceTable = {
  operator: string
  egress: string
  /** JSON of a `StoredRate`. */
  state: string
  changed_at: number
}

/** Whether a domain is a catch-all. */
type CatchAllTable = {
  domain: string
  catch_all: number
  keep_until: number
}

/** Texts that the server of a domain gave to a random recipient. */
type LearnedReplyTable = {
  /** The network of the mail servers; '' is the public one, and a simulator has another. */
  network: string
  domain: string
  /** Code and masked text. */
  reply: string
  operator: string
  software: string | null
  /** Subnet of the server. */
  subnet: string
  refuted: number
  learned_at: number
}

/** The last accepted recipient of a server that has rejected several. */
type WitnessTable = {
  /** The network of the mail servers; '' is the public one, and a simulator has another. */
  network: string
  /** A host name, an IP address, or several host names of one preference. */
  server: string
  recipient: string
  accepted_at: number
}

/** Settings that all processes on the database must agree on. */
type SettingTable = {
  name: string
  value: string
}
