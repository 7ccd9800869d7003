import type { HostPlan, } from './smtp-host/behaviors.ts'

import { fileURLToPath } from 'node:url'

/** A small world of mail: its domains, its mail servers, and how far away it is. Plain data, so it may stand in a JSON file. */
export type Scenario = {
  domains: Record<string, DomainPlan>
  hosts: Record<string, HostPlan>
  /** For people. */
  comment?: string
  /** Who lives at a host that names nobody; see `HostPlan`. */
  mailboxes?: readonly string[]
  /** One port for all mail servers; 0 or none takes a free one. */
  smtpPort?: number
  /** UDP and TCP; 0 or none takes a free one. */
  dnsPort?: number
  /** Distance to every mail server and to the DNS: a byte and its echo take this long. */
  roundTripMs?: number
  /** The DNS sends the addresses of exchangers along with MX records. */
  dnsAdditional?: boolean
}

/** What the DNS says of a domain. A name that nobody wrote down does not exist. */
export type DomainPlan = {
  /** For people. */
  comment?: string
  /** Preference and host; `null` is RFC 7505; `none` (the default) is a name without MX records. */
  mx?: readonly (readonly [preference: number, host: string])[] | 'null' | 'none'
  /** Addresses of the domain itself. A domain that is also a name in `hosts` has those of the host. */
  a?: readonly string[]
  aaaa?: readonly string[]
  /** TXT records, such as those of SPF. */
  txt?: readonly string[]
  /** The name of an address, in a domain such as `9.0.0.127.in-addr.arpa`. */
  ptr?: string
  /** Instead of an answer. `truncated` answers over TCP alone. */
  fault?: DnsTrouble
}

export type DnsTrouble = 'nxdomain' | 'servfail' | 'refused' | 'silent' | 'garbage' | 'truncated'

/** A scenario that shows what there is, for people to start from. */
export const EXAMPLE_FILE = fileURLToPath(new URL('./example.json', import.meta.url))
