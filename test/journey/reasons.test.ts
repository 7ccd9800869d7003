import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Resolver } from '../../src/engine/dns/resolver.ts'
import { REASONS, type Reason } from '../../src/engine/verdict/reason.ts'
import { createEngine, type EngineOptions, type Result } from '../../src/index.ts'
import { type Simulator, startSimulator } from '../../src/simulator/simulator.ts'
import { isOfLists } from '../support/result.ts'

// Produces every reason over real DNS and SMTP on loopback, with its complete verdict.

type Row = {
  readonly reason: Reason
  /** Expected `valid` and `deliverable`. */
  readonly is: `${Mark} ${Mark}`
  readonly risk: 'low' | 'medium' | 'high' | 'unknown'
  readonly confidence: number
  /** Expected syntax, domain, MX and mailbox checks. */
  readonly details: `${Mark} ${Mark} ${Mark} ${Mark}`
  readonly address: string
  readonly options?: EngineOptions
  readonly checkSmtp?: boolean
}
type Mark = 'T' | 'F'

/** A resolver that throws a programming error. */
const brokenResolver: Resolver = {
  resolve: () => {
    throw new TypeError('records is not iterable')
  },
}

const ROWS: readonly Row[] = [
  row('accepted_email', 'T T', 'low', 95, 'T T T T', 'ann@polite.test'),
  row('role_account', 'T T', 'medium', 80, 'T T T T', 'info@polite.test'),
  row('possible_typo', 'T T', 'medium', 60, 'T T T T', 'ann@gamil.com'),
  row('catch_all', 'T F', 'medium', 50, 'T T T T', 'ann@everything.test'),
  row('low_deliverability', 'T F', 'medium', 50, 'T T T T', 'members.ann@polite.test'),
  row('low_quality', 'T T', 'medium', 55, 'T T T T', 'asdfasdf@polite.test'),
  row('disposable_email', 'T F', 'high', 90, 'T T T F', 'ann@throwaway.test', {
    options: { lists: { disposable: ['throwaway.test'] } },
  }),
  row('mailbox_full', 'T F', 'high', 85, 'T T T F', 'full.ann@polite.test'),
  row('spam_trap', 'T F', 'high', 90, 'T T T F', 'trap@polite.test', {
    options: { lists: { spamTrap: ['trap@polite.test'] } },
  }),
  row('blocklisted', 'T F', 'high', 99, 'T T T F', 'ann@polite.test', {
    options: { lists: { blocked: ['polite.test'] } },
  }),
  row('mailbox_disabled', 'F F', 'high', 95, 'T T T F', 'disabled.ann@polite.test'),
  row('rejected_email', 'F F', 'high', 98, 'T T T F', 'nobody@polite.test'),
  row('invalid_email', 'F F', 'high', 100, 'F F F F', 'ann..b@polite.test'),
  row('invalid_domain', 'F F', 'high', 99, 'T F F F', 'ann@nowhere.test'),
  row('no_mx_record', 'F F', 'high', 97, 'T T F F', 'ann@webless.test'),
  row('does_not_accept_mail', 'F F', 'high', 99, 'T T F F', 'ann@nomail.test'),
  row('dns_error', 'F F', 'unknown', 0, 'T F F F', 'ann@broken-dns.test'),
  row('no_connect', 'F F', 'unknown', 20, 'T T T F', 'ann@dead.test'),
  row('timeout', 'F F', 'unknown', 20, 'T T T F', 'ann@silent.test', {
    options: { greetingTimeoutMs: 60 },
  }),
  row('unavailable_smtp', 'F F', 'unknown', 20, 'T T T F', 'ann@troubled.test'),
  row('invalid_smtp', 'F F', 'unknown', 20, 'T T T F', 'ann@garbage.test'),
  row('greylisted', 'F F', 'unknown', 20, 'T T T F', 'ann@grey.test'),
  row('probe_blocked', 'F F', 'unknown', 10, 'T T T F', 'ann@fortress.test'),
  row('smtp_skipped', 'F F', 'unknown', 30, 'T T T F', 'ann@polite.test', { checkSmtp: false }),
  row('unexpected_error', 'F F', 'unknown', 0, 'T F F F', 'ann@polite.test', {
    options: { resolver: brokenResolver },
  }),
]

/** Other servers, DNS answers and addresses that lead to the same reasons. */
const MORE_ROWS: readonly Row[] = [
  row('accepted_email', 'T T', 'low', 95, 'T T T T', 'ann@own-exchanger.test'),
  row('accepted_email', 'T T', 'low', 95, 'T T T T', 'ann@second-chance.test'),
  row('accepted_email', 'T T', 'low', 95, 'T T T T', 'ann@sealed.test'),
  row('accepted_email', 'T T', 'low', 95, 'T T T T', 'ann@yhao.com'),
  row('possible_typo', 'T F', 'high', 85, 'T T T T', 'ann@gmall.com'),
  row('possible_typo', 'T F', 'high', 85, 'T T T F', 'ann@hotmial.com'),
  row('rejected_email', 'F F', 'high', 98, 'T T T F', 'nobody@gamil.com'),
  row('low_deliverability', 'T F', 'medium', 50, 'T T T T', 'ann@unsure.test'),
  row('mailbox_full', 'T F', 'high', 85, 'T T T F', 'full-for-now.ann@polite.test'),
  row('rejected_email', 'F F', 'high', 98, 'T T T F', 'moved.ann@polite.test'),
  row('no_mx_record', 'F F', 'high', 97, 'T T F F', 'ann@no-address.test'),
  row('dns_error', 'F F', 'unknown', 0, 'T F F F', 'ann@refused-dns.test'),
  row('dns_error', 'F F', 'unknown', 0, 'T F F F', 'ann@quiet-dns.test', {
    options: { deadlineMs: 200 },
  }),
  row('dns_error', 'F F', 'unknown', 0, 'T F F F', 'ann@lost-exchanger.test'),
  row('no_connect', 'F F', 'unknown', 20, 'T T T F', 'ann@inside.test'),
  row('timeout', 'F F', 'unknown', 20, 'T T T F', 'ann@drip.test', {
    options: { deadlineMs: 300 },
  }),
  row('unavailable_smtp', 'F F', 'unknown', 20, 'T T T F', 'ann@hangs-up.test'),
  row('unavailable_smtp', 'F F', 'unknown', 20, 'T T T F', 'ann@resets.test'),
  row('invalid_smtp', 'F F', 'unknown', 20, 'T T T F', 'ann@early.test'),
  row('invalid_smtp', 'F F', 'unknown', 20, 'T T T F', 'ann@endless.test'),
  row('probe_blocked', 'F F', 'unknown', 10, 'T T T F', 'ann@sender-refused.test'),
  row('probe_blocked', 'F F', 'unknown', 10, 'T T T F', 'ann@blocks-at-rcpt.test'),
  row('smtp_skipped', 'F F', 'unknown', 30, 'T T T F', 'zoë@ascii-only.test'),
  row('smtp_skipped', 'F F', 'unknown', 30, 'T T T F', 'ann@[192.0.2.1]'),
]

const mx = (host: string) => ({ mx: [[10, host]] as const })
let simulator: Simulator

beforeAll(async () => {
  simulator = await startSimulator({
    mailboxes: ['ann', 'info', 'asdfasdf', 'trap', 'zoë'],
    domains: {
      'polite.test': mx('mx.polite.test'),
      'gamil.com': mx('mx.polite.test'),
      'yhao.com': mx('mx.polite.test'),
      'gmall.com': mx('mx.everything.test'),
      'hotmial.com': mx('mx37.mb5p.com'),
      'throwaway.test': mx('mx.polite.test'),
      'everything.test': mx('mx.everything.test'),
      'webless.test': {},
      'nomail.test': { mx: 'null' },
      'broken-dns.test': { fault: 'servfail' },
      'refused-dns.test': { fault: 'refused' },
      'quiet-dns.test': { fault: 'silent' },
      'no-address.test': mx('mx.nowhere.test'),
      'lost-exchanger.test': mx('mx.broken-dns.test'),
      'mx.broken-dns.test': { fault: 'servfail' },
      'inside.test': mx('mx.inside.test'),
      'mx.inside.test': { a: ['10.0.0.1'] },
      'second-chance.test': {
        mx: [
          [10, 'mx.dead.test'],
          [20, 'mx.polite.test'],
        ],
      },
      ...Object.fromEntries(
        [
          ...['dead', 'silent', 'troubled', 'garbage', 'grey', 'fortress', 'sealed', 'unsure'],
          ...['drip', 'hangs-up', 'resets', 'early', 'endless', 'sender-refused'],
          ...['blocks-at-rcpt', 'ascii-only'],
        ].map(name => [`${name}.test`, mx(`mx.${name}.test`)]),
      ),
    },
    hosts: {
      'mx.polite.test': { behavior: 'polite' },
      'own-exchanger.test': { behavior: 'polite' },
      'mx.everything.test': { behavior: 'catch-all' },
      'mx.dead.test': { behavior: 'dead' },
      'mx.silent.test': { behavior: 'silent' },
      'mx.troubled.test': { behavior: 'temporary' },
      'mx.garbage.test': { behavior: 'garbage' },
      'mx.grey.test': { behavior: 'greylist', seconds: 300 },
      'mx.fortress.test': { behavior: 'blocks-us' },
      'mx.sealed.test': { behavior: 'needs-starttls' },
      'mx.unsure.test': {
        behavior: 'polite',
        rules: [{ on: 'RCPT', reply: '252 2.1.5 Cannot verify' }],
      },
      'mx.drip.test': { behavior: 'drip', ms: 100 },
      'mx.hangs-up.test': { behavior: 'hangs-up' },
      'mx.resets.test': { behavior: 'resets' },
      'mx.early.test': { behavior: 'early' },
      'mx.endless.test': { behavior: 'endless' },
      'mx.sender-refused.test': { behavior: 'sender-refused' },
      'mx.blocks-at-rcpt.test': { behavior: 'blocks-at-rcpt' },
      'mx.ascii-only.test': { behavior: 'no-smtputf8' },
    },
  })
})
afterAll(() => simulator.close())

describe('each reason over real sockets has its complete verdict', () => {
  test.each(ROWS)('$reason: $address', async row => {
    expect(summarize(await verify(row))).toEqual(expected(row))
  })

  test('every reason of a single address has one row', () => {
    const single = REASONS.filter(reason => !isOfLists(reason))
    expect(ROWS.map(({ reason }) => reason).toSorted()).toEqual(single.toSorted())
  })
})

describe('other causes of a reason', () => {
  test.each(MORE_ROWS)('$reason: $address', async row => {
    expect(summarize(await verify(row))).toEqual(expected(row))
  })
})

async function verify({ address, options = {}, checkSmtp = true }: Row): Promise<Result> {
  const engine = createEngine({
    dns: [simulator.dnsAddress],
    smtpPort: simulator.smtpPort,
    allowRanges: ['127.0.0.0/8'],
    specialDomains: true,
    helo: 'probe.test',
    ...options,
  })
  try {
    return await engine.verify(address, { checkSmtp })
  } finally {
    await engine.close()
  }
}

function summarize({ verdict }: Result) {
  const { reason, valid, deliverable, risk, confidence, details } = verdict
  const { syntaxValid, domainExists, mxRecord, smtpValid } = details
  return {
    reason,
    is: marks(valid, deliverable),
    risk,
    confidence,
    details: marks(syntaxValid, domainExists, mxRecord, smtpValid),
  }
}

const expected = ({ reason, is, risk, confidence, details }: Row) => ({
  reason,
  is,
  risk,
  confidence,
  details,
})

const marks = (...values: boolean[]) => values.map(value => (value ? 'T' : 'F')).join(' ')

function row(
  reason: Reason,
  is: Row['is'],
  risk: Row['risk'],
  confidence: number,
  details: Row['details'],
  address: string,
  overrides: Pick<Row, 'options' | 'checkSmtp'> = {},
): Row {
  return { reason, is, risk, confidence, details, address, ...overrides }
}
