import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { EvError, errorMessage } from '../platform/error.ts'
import { sanitizeText } from '../platform/text.ts'
import { checkScenario } from './check.ts'
import type { BehaviorName } from './smtp-host/behaviors.ts'
import type { Rule } from './smtp-host/rule.ts'

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

/** One mail server. */
export type HostPlan = {
  /** For people. */
  comment?: string
  behavior: BehaviorName
  /** Addresses, IPv4 or IPv6; those that are not of the loopback are only told by DNS. None given: one of 127.0.0.0/8 is allotted. */
  ip?: string | readonly string[]
  /** Who lives there: local parts or whole addresses, `*` for any run of characters. Default: those of the scenario, else `user*`. */
  mailboxes?: readonly string[]
  /** Asked before the rules of the behavior. */
  rules?: readonly Rule[]
  /** EHLO keywords instead of the usual ones; for STARTTLS see below. */
  extensions?: readonly string[]
  /** Whether STARTTLS is offered: `needs-starttls` does, the others do not. */
  starttls?: boolean
  /** How long `greylist` keeps a recipient waiting, and what `temporary` says of its trouble. */
  seconds?: number
  /** Pause before each reply (`slow`) or byte (`drip`). */
  ms?: number
  /** Recipients after which `throttles` says 421. */
  max?: number
  /** Spoken by the library of that name instead of by this one: an independent judge of our client. Greets after 100 ms. */
  engine?: 'smtp-server'
}

/** Reads a scenario from a JSON file; throws `no_input` or `bad_input`. */
export function readScenario(file: string): Scenario {
  return checkScenario(parse(file, readText(file)))
}

function readText(file: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch (cause) {
    throw new EvError('no_input', `Cannot read the scenario ${file}: ${errorMessage(cause)}.`, {
      cause,
    })
  }
}

function parse(file: string, text: string): unknown {
  try {
    return JSON.parse(text)
  } catch (cause) {
    const sentence = `The scenario ${file} is no JSON: ${sanitizeText(errorMessage(cause))}.`
    throw new EvError('bad_input', sentence, { cause })
  }
}

/** A scenario that shows what there is, for people to start from. */
export const EXAMPLE_FILE = fileURLToPath(new URL('./example.json', import.meta.url))
