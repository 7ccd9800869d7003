import { isNegative, type Resolver } from '../dns/resolver.ts'
import type { Signal } from '../verdict/verdict.ts'
import { SIGNAL_SHIFTS } from './signal.ts'

/** `v=spf1 -all` and nothing else: no server may send mail of the domain (RFC 7208 §10.1.2). */
const SENDS_NOTHING = /^v=spf1 +-all *$/i
const SPF = /^v=spf1( |$)/i
const DMARC = /^v=DMARC1 *(;|$)/i
/** RFC 8461 §3.1 */
const MTA_STS = /^v=STSv1 *;/i

/** The policies that a domain publishes for its mail. */
export type MailPolicies = {
  /** Its SPF records (RFC 7208); more than one is an error of the domain. */
  readonly spf: readonly string[]
  /** Its DMARC records (RFC 7489); with more than one, none counts. */
  readonly dmarc: readonly string[]
  /** Whether it announces an MTA-STS policy (RFC 8461). */
  readonly mtaSts: boolean
}

/** Reads the policies of a domain; null if one of the DNS lookups failed. */
export async function findMailPolicies(
  resolver: Resolver,
  domain: string,
  signal: AbortSignal,
): Promise<MailPolicies | null> {
  const [own, dmarc, sts] = await Promise.all(
    [domain, `_dmarc.${domain}`, `_mta-sts.${domain}`].map(name =>
      findTexts(resolver, name, signal),
    ),
  )
  if (own == null || dmarc == null || sts == null) return null
  return {
    spf: own.filter(text => SPF.test(text)),
    dmarc: dmarc.filter(text => DMARC.test(text)),
    mtaSts: sts.some(text => MTA_STS.test(text)),
  }
}

/** RFC 7489 §6.3 */
export const DMARC_POLICIES = ['none', 'quarantine', 'reject'] as const

type DmarcPolicy = (typeof DMARC_POLICIES)[number]

/** Returns the policy of a DMARC record, such as `reject`; null without a valid one. */
export function getDmarcPolicy(records: readonly string[]): DmarcPolicy | null {
  const [record, ...others] = records
  const policy = record === undefined || others.length > 0 ? null : parseTags(record).get('p')
  return DMARC_POLICIES.find(one => one === policy) ?? null
}

/** Returns what the policies of a domain say about it; null if one of the DNS lookups failed. */
export async function findPolicySignals(
  resolver: Resolver,
  domain: string,
  { hasMx, signal }: { readonly hasMx: boolean; readonly signal: AbortSignal },
): Promise<Signal[] | null> {
  const policies = await findMailPolicies(resolver, domain, signal)
  if (policies === null) return null
  const { spf, dmarc, mtaSts } = policies
  const [policy, ...others] = dmarc
  const sendsNothing = spf.length === 1 && SENDS_NOTHING.test(spf[0] ?? '')
  const rejectsUnseen = policy !== undefined && others.length === 0 && isBareReject(policy)
  const signals: Signal[] = []
  if (hasMx && sendsNothing && rejectsUnseen) {
    signals.push({
      name: 'policies',
      shift: SIGNAL_SHIFTS.noMailPolicy,
      detail:
        'The domain sends no mail (v=spf1 -all) and rejects mail in its name without reports (DMARC), but has a mail exchanger.',
    })
  }
  if (mtaSts) {
    signals.push({
      name: 'policies',
      shift: SIGNAL_SHIFTS.mtaSts,
      detail: 'The domain publishes an MTA-STS policy: its mail is maintained.',
    })
  }
  return signals
}

/** Whether a DMARC policy rejects mail and asks for no reports (RFC 7489 §6.3). */
function isBareReject(policy: string): boolean {
  const tags = parseTags(policy)
  return tags.get('p') === 'reject' && !tags.has('rua') && !tags.has('ruf')
}

const parseTags = (record: string) =>
  new Map(
    record.split(';').map(tag => {
      const [name = '', ...value] = tag.split('=')
      return [name.trim().toLowerCase(), value.join('=').trim().toLowerCase()]
    }),
  )

/** Returns the TXT records of a name; null if the lookup failed. */
async function findTexts(
  resolver: Resolver,
  name: string,
  signal: AbortSignal,
): Promise<readonly string[] | null> {
  const answer = await resolver.resolve(name, 'TXT', signal)
  if ('records' in answer) return answer.records
  return isNegative(answer) ? [] : null
}
