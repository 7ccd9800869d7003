declare module '../db/schema.ts' {
  interface Schema {
    member: MemberTable
    pace: PaceTable
    catch_all: CatchAllTable
    setting: SettingTable
  }
}

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

/** What all that share the database must agree upon. */
export type SettingTable = {
  name: string
  value: string
}
