import { describe, expect, test } from 'vitest'
import {
  columnValues,
  LIST_COLUMNS,
  plainResult,
  presentResult,
  toListColumns,
} from '../../../src/engine/verdict/present-result.ts'
import { createTestEngine, mail } from '../../support/engine.ts'
import { toRecipients } from '../../support/recipients.ts'
import { RESULT_NAMES } from '../../support/result.ts'

const DETAILS = ['syntax_valid', 'domain_exists', 'mx_record', 'smtp_valid']

describe('a single result', () => {
  test('has the keys of the spec in its order, then the class and the action', async () => {
    const { verify } = createTestEngine()
    const shown = presentResult(await verify('ann@a.test'))
    expect(Object.keys(shown)).toEqual(RESULT_NAMES)
    expect(Object.keys(shown.details)).toEqual(DETAILS)
    expect(shown).toEqual({
      email: 'ann@a.test',
      valid: true,
      deliverable: true,
      risk_level: 'low',
      provider: 'a.test',
      response_time: 0,
      confidence: 95,
      details: { syntax_valid: true, domain_exists: true, mx_record: true, smtp_valid: true },
      reason: 'accepted_email',
      cached: false,
      class: 'deliverable',
      action: 'send',
      action_reason: 'The mail server accepts mail for this address, so send.',
    })
  })

  test.each(['nonsense', 'ann@nowhere.test', 'nobody@a.test', 'ann@[192.0.2.1]'])(
    'has them for any outcome: %s',
    async text => {
      const { verify } = createTestEngine()
      expect(Object.keys(presentResult(await verify(text)))).toEqual(RESULT_NAMES)
    },
  )

  test('has an empty provider for a text without a domain, as the field is a string', async () => {
    const { verify } = createTestEngine()
    expect(presentResult(await verify('nonsense')).provider).toBe('')
  })

  test.each<[string, number | undefined]>([
    ['450 4.2.0 Greylisted, try again in 90 seconds', 90],
    ['450 4.2.0 Greylisted', 300],
    ['451 4.3.0 Busy, try again in 2 minutes', 120],
    ['451 4.3.0 Busy', undefined],
    ['550 5.7.1 Your IP is on a block list', undefined],
    ['550 5.1.1 No such user, try again in 5 minutes', undefined],
  ])('has retry_after after %j: %s', async (reply, seconds) => {
    const { verify } = createTestEngine({ script: toRecipients(() => reply) })
    const shown = presentResult(await verify('ann@a.test'))
    expect(shown.retry_after).toBe(seconds)
    expect('retry_after' in shown).toBe(seconds !== undefined)
  })

  test('has no other fields in its plain form, not even retry_after', async () => {
    const { verify } = createTestEngine({ script: toRecipients(() => '450 4.2.0 Greylisted') })
    expect(Object.keys(plainResult(await verify('ann@a.test'), 'balanced'))).toEqual(RESULT_NAMES)
  })

  test('includes flags with the exchanger and the time', async () => {
    const { verify } = createTestEngine()
    expect(presentResult(await verify('info@a.test'), ['flags'])).toMatchObject({
      flags: {
        is_disposable: false,
        is_role: true,
        is_catch_all: false,
        is_free: false,
        is_relay: false,
      },
      did_you_mean: null,
      mx_host: 'mx.a.test',
      checked_at: '2026-06-01T12:00:00.000Z',
    })
  })

  test('includes evidence with the sanitized reply', async () => {
    const script = toRecipients(() => '550 5.1.1 \u001b[31mno\u0000 <b>such</b> user')
    const { verify } = createTestEngine({ script })
    const { evidence } = presentResult(await verify('ann@a.test'), ['evidence'])
    expect(evidence).toMatchObject({
      syntax: null,
      canonical: 'ann@a.test',
      operator: 'a.test',
      route: { kind: 'mx', hosts: [{ preference: 10, host: 'mx.a.test' }] },
      egress: 'default',
      host: 'mx.a.test',
      ip: '192.0.2.1',
      tls: false,
      answer: {
        kind: 'rejected',
        why: 'no-mailbox',
        stage: 'rcpt',
        code: 550,
        enhanced_code: '5.1.1',
        text: '\uFFFD[31mno\uFFFD <b>such</b> user',
        meaning: expect.any(String),
      },
      catch_all: null,
      failure: null,
    })
    expect(evidence).not.toHaveProperty('dialogue')
  })

  test('includes the position and the rule of a syntax error in the evidence', async () => {
    const { verify } = createTestEngine()
    const { evidence } = presentResult(await verify('ann..b@a.test'), ['evidence'])
    expect(evidence?.syntax).toMatchObject({ at: 3, rule: expect.any(String) })
    expect(evidence).toMatchObject({ answer: null, route: null, egress: null })
  })

  test('survives a JSON round trip', async () => {
    const { verify } = createTestEngine()
    for (const text of ['ann@a.test', 'nonsense', 'ann@nowhere.test']) {
      const shown = presentResult(await verify(text, { include: ['dialogue'] }), [
        'flags',
        'evidence',
      ])
      expect(JSON.parse(JSON.stringify(shown))).toEqual(shown)
    }
  })

  test('shows a domain that is its own exchanger', async () => {
    const { verify } = createTestEngine({ zone: { 'b.test': { A: ['192.0.2.2'] } } })
    const shown = presentResult(await verify('ann@b.test'), ['flags', 'evidence'])
    expect(shown.mx_host).toBe('b.test')
    expect(shown.evidence?.route).toEqual({
      kind: 'implicit',
      hosts: [{ preference: 0, host: 'b.test' }],
    })
  })
})

describe('a row of a list', () => {
  const row = (values: ReturnType<typeof toListColumns>) =>
    Object.fromEntries(LIST_COLUMNS.map((column, index) => [column, values[index]]))

  test('has a value for each column, in their order', async () => {
    const { verify } = createTestEngine({ zone: mail('gamil.com', '192.0.2.2') })
    const values = toListColumns(columnValues(await verify('info@gamil.com'), 'send_with_care'))
    expect(values).toHaveLength(LIST_COLUMNS.length)
    expect(row(values)).toEqual({
      ev_email: 'info@gamil.com',
      ev_valid: true,
      ev_deliverable: true,
      ev_risk_level: 'medium',
      ev_reason: 'role_account',
      ev_cached: false,
      ev_class: 'risky',
      ev_action: 'send_with_care',
      ev_confidence: 80,
      ev_syntax_valid: true,
      ev_domain_exists: true,
      ev_mx_record: true,
      ev_smtp_valid: true,
      ev_did_you_mean: 'info@gmail.com',
      ev_is_disposable: false,
      ev_is_role: true,
      ev_is_catch_all: false,
      ev_is_free: false,
      ev_provider: 'gamil.com',
      ev_operator: 'gamil.com',
      ev_mx_host: 'mx.gamil.com',
      ev_smtp_code: 250,
      ev_smtp_text: 'Ok',
      ev_checked_at: '2026-06-01T12:00:00.000Z',
      ev_canonical: 'info@gamil.com',
      ev_simulated: false,
      ev_checked_by: 'ev',
    })
  })

  test('distinguishes valid from deliverable', async () => {
    const { verify } = createTestEngine({ script: {} })
    expect(row(toListColumns(columnValues(await verify('ann@a.test'), 'send')))).toMatchObject({
      ev_valid: true,
      ev_deliverable: false,
      ev_reason: 'catch_all',
      ev_is_catch_all: true,
    })
  })

  test('has a verdict and no facts for an invalid address', async () => {
    const { verify } = createTestEngine()
    expect(row(toListColumns(columnValues(await verify('nonsense'), 'send')))).toMatchObject({
      ev_email: 'nonsense',
      ev_class: 'undeliverable',
      ev_reason: 'invalid_email',
      ev_is_catch_all: null,
      ev_provider: '',
      ev_operator: null,
      ev_mx_host: null,
      ev_smtp_code: null,
      ev_smtp_text: null,
    })
  })

  test('has the observed failure and no code without a reply', async () => {
    const { verify } = createTestEngine({ script: { greeting: null } })
    const shown = row(toListColumns(columnValues(await verify('ann@a.test'), 'send')))
    expect(shown).toMatchObject({ ev_reason: 'timeout', ev_smtp_code: null })
    expect(shown.ev_smtp_text).toMatch(/./)
  })

  test('has server text as one short line', async () => {
    const long = `550-5.1.1 ${'no '.repeat(200)}\n550 5.1.1 ${'never '.repeat(200)}`
    const { verify } = createTestEngine({ script: toRecipients(() => long) })
    const text = row(toListColumns(columnValues(await verify('ann@a.test'), 'send'))).ev_smtp_text
    expect(text).toMatch(/^no no .*…$/)
    expect(String(text).length).toBeLessThanOrEqual(256)
  })
})
