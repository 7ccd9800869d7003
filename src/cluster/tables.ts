/** A process that works on a database that several share. Times are of the database's clock, epoch ms. */
export type MemberTable = {
  id: string
  role: MemberRole
  /** For people: its machine and process. */
  name: string
  version: string
  /** JSON: names of the egresses that it asks by. */
  egresses: string
  joined_at: number
  /** When it was last heard of. */
  seen_at: number
}

/** `serve` answers requests too. */
export type MemberRole = 'serve' | 'worker'

/** Credits that a member has set aside for single verifications, which end with it. */
export type HoldTable = {
  member_id: string
  account_id: string
  period_start: number
  amount: number
}

/** How an operator is asked by an egress, over all members. */
export type PaceTable = {
  operator: string
  egress: string
  /** JSON. */
  state: string
  changed_at: number
}

/** Whether a domain takes mail for everybody. */
export type CatchAllTable = {
  domain: string
  catch_all: number
  keep_until: number
}

/** Requests of one kind by one asker. */
export type BucketTable = {
  key: string
  used: number
  per_ms: number
  ends_at: number
}

/** What all that share the database must agree upon. */
export type SettingTable = {
  name: string
  value: string
}
