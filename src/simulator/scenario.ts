import { fileURLToPath } from 'node:url'
import type { HostPlan } from './smtp-host/behaviors.ts'

/** Simulated domains, mail servers and latency. Plain data, so that a JSON file can contain it. */
export type Scenario = {
  domains: Record<string, DomainPlan>
  hosts: Record<string, HostPlan>
  /** Not interpreted. */
  comment?: string
  /** Default mailboxes of hosts without their own; see `HostPlan`. */
  mailboxes?: readonly string[]
  /** Port of all mail servers; 0 or undefined selects a free one. */
  smtpPort?: number
  /** Port of the DNS server, UDP and TCP; 0 or undefined selects a free one. */
  dnsPort?: number
  /** Round-trip time to every mail server and to the DNS server. */
  roundTripMs?: number
  /** Whether MX answers include the addresses of the exchangers in the additional section. */
  dnsAdditional?: boolean
}

/** DNS records of a domain. Names that the scenario does not contain do not exist. */
export type DomainPlan = {
  /** Not interpreted. */
  comment?: string
  /** MX records; `null` is a null MX (RFC 7505); `none` (the default) means no MX records. */
  mx?: readonly (readonly [preference: number, host: string])[] | 'null' | 'none'
  /** A records of the domain. A domain that is also in `hosts` has the addresses of the host. */
  a?: readonly string[]
  aaaa?: readonly string[]
  /** TXT records, such as SPF. */
  txt?: readonly string[]
  /** PTR record, for a domain such as `9.0.0.127.in-addr.arpa`. */
  ptr?: string
  /** Error instead of an answer. `truncated` answers only over TCP. */
  fault?: DnsTrouble
}

export type DnsTrouble = 'nxdomain' | 'servfail' | 'refused' | 'silent' | 'garbage' | 'truncated'

/** Path of the example scenario. */
export const EXAMPLE_FILE = fileURLToPath(new URL('./example.json', import.meta.url))
