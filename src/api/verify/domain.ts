import { z } from '@hono/zod-openapi'
import type { Context } from 'hono'
import { type Address, isFault, parseAddress } from '../../engine/address/address.ts'
import type { DomainFacts } from '../../engine/engine.ts'
import { DMARC_POLICIES, getDmarcPolicy } from '../../engine/signals/mail-policies.ts'
import { wilsonInterval } from '../../feedback/calibration.ts'
import type { DomainCount } from '../../feedback/feedback-counts.ts'
import { SECOND } from '../../platform/clock.ts'
import { sanitizeText } from '../../platform/text.ts'
import type { ApiDeps } from '../api-deps.ts'
import type { Env } from '../context.ts'
import { invalidRequest } from '../errors/request-errors.ts'
import { newRouter, route } from '../route.ts'
import { json, successBody } from '../schemas/answers.ts'

export type DomainDeps = Pick<ApiDeps, 'engine' | 'feedback' | 'guard'>

/** What is not known within this time is null. */
const LIMIT_MS = 5 * SECOND
/** RFC 1035 §2.3.4: 255 octets; a name in Unicode has fewer characters. */
const DOMAIN_LENGTH_MAX = 255
/** Reported domains have no longer SPF records in practice; the rest is cut. */
const RECORD_LENGTH_MAX = 512

const feedback = z
  .object({
    delivered: z.int().min(0).openapi({ description: 'Addresses that mail reached.', example: 48 }),
    bounced: z.int().min(0).openapi({ description: "Addresses that don't exist.", example: 2 }),
    bounce_rate_min: z.number().openapi({
      description: 'Lower end of the 95% Wilson interval.',
      example: 0.011,
    }),
    bounce_rate_max: z.number().openapi({ example: 0.135 }),
  })
  .openapi('DomainFeedback')

const policies = z
  .object({
    spf: z.string().nullable().openapi({
      description: 'SPF record. Null without one.',
      example: 'v=spf1 mx -all',
    }),
    dmarc: z.enum(DMARC_POLICIES).nullable().openapi({
      description: 'Policy of the DMARC record. Null without a valid one.',
      example: 'reject',
    }),
    mta_sts: z.boolean().openapi({
      description: 'Whether the domain announces MTA-STS.',
      example: false,
    }),
  })
  .openapi('MailPolicies')

const MAIL = ['mx', 'implicit', 'null-mx', 'no-mail', 'no-domain', 'unknown'] as const

const DomainAnswer = successBody(
  z.object({
    domain: z.string().openapi({ description: 'The domain, in ASCII.', example: 'example.com' }),
    mail: z.enum(MAIL).openapi({
      example: 'mx',
      description:
        '`mx`: it has MX records. `implicit`: its own address receives mail. `null-mx`: it declares that it accepts no mail. `no-mail`: it has no mail server. `no-domain`: it does not exist. `unknown`: the DNS lookup failed, or the domain is on your blocklist.',
    }),
    mx_hosts: z.array(z.string()).openapi({
      description: 'Mail servers, preferred first.',
      example: ['mx1.example.com', 'mx2.example.com'],
    }),
    operator: z.string().nullable().openapi({
      description: 'Operator of the mail servers.',
      example: 'example.com',
    }),
    provider: z.string().nullable().openapi({
      description: 'Name of the operator, for people.',
      example: 'example.com',
    }),
    is_catch_all: z.boolean().nullable().openapi({
      example: false,
      description:
        'Whether the domain accepts mail for every address, if a verification has found that out in the last days. Otherwise null.',
    }),
    is_disposable: z.boolean().openapi({ example: false }),
    is_free: z.boolean().openapi({ example: false }),
    is_relay: z.boolean().openapi({ example: false }),
    is_blocklisted: z.boolean().openapi({ example: false }),
    did_you_mean: z.string().nullable().openapi({
      description: 'Suggested domain, if this one looks misspelled. Otherwise null.',
      example: null,
    }),
    policies: z.union([policies, z.null()]).openapi({
      description: 'Policies that the domain publishes. Null if a DNS lookup failed.',
    }),
    feedback: z.union([feedback, z.null()]).openapi({
      description: 'Outcomes of addresses that your account reported. Null without any.',
    }),
    sandbox: z.literal(true).optional().openapi({ description: 'The facts are simulated.' }),
  }),
).openapi('DomainAnswer')

type DomainData = z.infer<typeof DomainAnswer>['data']

const params = z.object({
  domain: z.string().max(DOMAIN_LENGTH_MAX).openapi({
    description: 'The domain, in ASCII or Unicode.',
    example: 'example.com',
  }),
})

/** Route of what is known about a domain. */
export function domainRoutes(service: DomainDeps) {
  const get = route(service, 'GET /v1/domains/{domain}', {
    id: 'getDomain',
    summary: 'Get what is known about a domain',
    description: `Looks the domain up in the DNS and in lists, and adds what earlier verifications and your reports tell. It contacts no mail server and is free; it counts toward the rate limits of single verifications. What isn't known after ${LIMIT_MS / SECOND} seconds is null. In the sandbox, no DNS server is asked.`,
    scope: 'verify:single',
    counts: 'single',
    params,
    isAlwaysFound: true,
    answer: json(DomainAnswer, 'The domain'),
  })
  return newRouter().handle(get, async c => {
    const { domain } = parseDomain(c.req.valid('param').domain)
    const data = c.get('sandbox')
      ? simulateDomain(domain.ascii)
      : await describe(c, service, domain.ascii)
    return c.json({ success: true as const, data }, 200)
  })
}

function parseDomain(text: string): Address {
  const address = parseAddress(`postmaster@${text}`)
  if (!isFault(address) && address.domain.kind !== 'literal' && !text.includes('@')) return address
  const why = isFault(address) ? ` ${address.message}` : ''
  throw invalidRequest(
    `"${sanitizeText(text, 80)}" is not a domain.${why} Send a domain, such as example.com.`,
  )
}

async function describe(c: Context<Env>, service: DomainDeps, domain: string): Promise<DomainData> {
  const { signal } = c.req.raw
  const [facts, counted] = await Promise.all([
    service.engine.describeDomain(domain, { limitMs: LIMIT_MS, signal }),
    service.feedback.getDomainCount(c.get('caller').account.id, domain),
  ])
  return present(domain, facts, counted)
}

function present(domain: string, facts: DomainFacts, counted: DomainCount | null): DomainData {
  const { route: found, operator, flags, catchAll, disposableHost, suggestion } = facts
  return {
    domain,
    mail: found?.kind ?? 'unknown',
    mx_hosts: listHosts(found),
    operator: operator?.name ?? null,
    provider: operator?.title ?? null,
    is_catch_all: catchAll,
    is_disposable: disposableHost || (flags?.disposable ?? false),
    is_free: flags?.free ?? false,
    is_relay: flags?.relay ?? false,
    is_blocklisted: flags?.blocked ?? false,
    did_you_mean: suggestion?.slice(suggestion.lastIndexOf('@') + 1) ?? null,
    policies: presentPolicies(facts),
    feedback: counted === null ? null : presentCount(counted),
  }
}

function listHosts(found: DomainFacts['route']): string[] {
  if (found?.kind === 'mx') return found.hosts.map(({ host }) => host)
  return found?.kind === 'implicit' ? [found.host] : []
}

function presentPolicies({ policies: found }: DomainFacts): DomainData['policies'] {
  if (found === null) return null
  const [spf] = found.spf
  return {
    spf: spf === undefined ? null : sanitizeText(spf, RECORD_LENGTH_MAX),
    dmarc: getDmarcPolicy(found.dmarc),
    mta_sts: found.mtaSts,
  }
}

function presentCount({ alive, dead }: DomainCount): DomainData['feedback'] {
  const { low, high } = wilsonInterval(dead, alive + dead)
  const round = (rate: number) => Number(rate.toFixed(3))
  return {
    delivered: alive,
    bounced: dead,
    bounce_rate_min: round(low),
    bounce_rate_max: round(high),
  }
}

/** Simulated facts: the prefix of the domain selects a catch-all or a disposable domain. */
const simulateDomain = (domain: string): DomainData => ({
  domain,
  mail: 'mx',
  mx_hosts: [`mx.${domain}`],
  operator: domain,
  provider: domain,
  is_catch_all: domain.startsWith('catchall'),
  is_disposable: domain.startsWith('disposable'),
  is_free: false,
  is_relay: false,
  is_blocklisted: false,
  did_you_mean: null,
  policies: { spf: null, dmarc: null, mta_sts: false },
  feedback: null,
  sandbox: true,
})
