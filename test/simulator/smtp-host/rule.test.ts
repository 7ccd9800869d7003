import { describe, expect, test } from 'vitest'
import { startSimulator } from '../../../src/simulator/simulator.ts'
import {
  addressMatcher,
  createRuleSet,
  type Moment,
} from '../../../src/simulator/smtp-host/rule.ts'
import { Talk } from '../talk.ts'

const MOMENT: Moment = {
  host: 'mx.a.test',
  client: '127.0.0.1',
  from: '',
  to: 'ann@a.test',
  secure: false,
  inTransaction: 1,
  inConnection: 1,
  connection: 1,
  sessions: 1,
  times: 1,
  sinceMs: 0,
}
const replyTo = (
  rules: Parameters<typeof createRuleSet>[0],
  moment: Partial<Moment> = {},
  verb = 'RCPT',
) => createRuleSet(rules).find(verb, { ...MOMENT, ...moment })?.reply

describe('a rule set', () => {
  test('finds the first matching rule', () => {
    const rules = [
      { on: 'RCPT', to: 'bob', reply: 'bob' },
      { on: 'RCPT', to: 'ann', reply: 'ann' },
      { on: 'RCPT', reply: 'anybody' },
    ] as const
    expect(replyTo(rules)).toBe('ann')
    expect(replyTo(rules, { to: 'zoe@a.test' })).toBe('anybody')
    expect(replyTo(rules, {}, 'MAIL')).toBeUndefined()
  })

  test('ANY matches every command, of SMTP or not, but not the connection', () => {
    const rules = [{ on: 'ANY', reply: 'no' }] as const
    expect(replyTo(rules, {}, 'RSET')).toBe('no')
    expect(replyTo(rules, {}, 'VRFY')).toBe('no')
    expect(replyTo(rules, {}, 'CONNECT')).toBeUndefined()
  })

  test.each([
    [{ from: '' }, { from: '' }, { from: 'me@probe.test' }],
    [{ from: 'me' }, { from: 'me@probe.test' }, { from: '' }],
    [{ timesMax: 2 }, { times: 2 }, { times: 3 }],
    [{ withinMs: 100 }, { sinceMs: 99 }, { sinceMs: 100 }],
    [{ recipientFrom: 2 }, { inTransaction: 2 }, { inTransaction: 1 }],
    [{ askedAbove: 2 }, { inConnection: 3 }, { inConnection: 2 }],
    [{ connectionFrom: 2 }, { connection: 2 }, { connection: 1 }],
    [{ connectionMax: 1 }, { connection: 1 }, { connection: 2 }],
    [{ sessionsAbove: 1 }, { sessions: 2 }, { sessions: 1 }],
    [{ secure: true }, { secure: true }, { secure: false }],
    [{ client: '127.0.0.2' }, { client: '127.0.0.2' }, { client: '127.0.0.20' }],
    [{ client: '127.0.0.*' }, { client: '127.0.0.20' }, { client: '127.0.1.2' }],
    [{ client: ['127.0.0.2', '::1'] }, { client: '::1' }, { client: '127.0.0.1' }],
  ])('%j matches %j and not %j', (condition, holds, fails) => {
    const rules = [{ on: 'RCPT', ...condition, reply: 'yes' }] as const
    expect(replyTo(rules, holds)).toBe('yes')
    expect(replyTo(rules, fails)).toBeUndefined()
  })

  test.each([
    ['user*', 'user7@a.test', true],
    ['user*', 'USER@a.test', true],
    ['user*', 'a.user@b.test', false],
    ['*@a.test', 'whoever@a.test', true],
    ['*@a.test', 'whoever@b.test', false],
    ['a.b', 'a.b@x.test', true],
    ['a.*', 'axb@x.test', false],
    ['john smith', '"john smith"@x.test', true],
    ['zoë.*', 'zoë.å@x.test', true],
    ['*', 'postmaster', true],
  ])('the pattern %s and %s: %s', (pattern, address, fits) => {
    expect(addressMatcher([pattern])(address)).toBe(fits)
  })
})

test('rules of a scenario come before those of the behavior', async () => {
  const rule = {
    on: 'RCPT',
    to: 'user1',
    timesMax: 1,
    reply: '451 4.7.1 <{to}>: not yet, {client}',
  }
  const simulator = await startSimulator({
    domains: {},
    hosts: { 'mx.a.test': { behavior: 'polite', rules: [{ ...rule, on: 'RCPT' }] } },
  })
  const talk = await Talk.with(simulator, 'mx.a.test')
  await talk.reply()
  await talk.say('HELO probe.test')
  await talk.say('MAIL FROM:<>')
  expect(await talk.say('RCPT TO:<user1@a.test>')).toBe(
    '451 4.7.1 <user1@a.test>: not yet, 127.0.0.1',
  )
  expect(await talk.say('RCPT TO:<user1@a.test>')).toBe('250 2.1.5 Ok')
  expect(await talk.say('RCPT TO:<user2@a.test>')).toBe('250 2.1.5 Ok')
  talk.hangUp()
  await simulator.close()
})

test('a rule for one client does not affect others, and each is counted', async () => {
  const simulator = await startSimulator({
    domains: {},
    hosts: {
      'mx.a.test': {
        behavior: 'polite',
        rules: [{ on: 'CONNECT', client: '127.0.0.2', reply: '554 5.7.1 {client} is blocked' }],
      },
    },
  })
  const blocked = await Talk.with(simulator, 'mx.a.test', '127.0.0.2')
  expect(await blocked.reply()).toBe('554 5.7.1 127.0.0.2 is blocked')
  const welcome = await Talk.with(simulator, 'mx.a.test', '127.0.0.3')
  expect(await welcome.reply()).toBe('220 mx.a.test ESMTP')
  await welcome.say('QUIT')
  await (await Talk.with(simulator, 'mx.a.test', '127.0.0.3')).reply()
  const { total, hosts } = simulator.counters()
  expect(total.clients).toMatchObject({
    '127.0.0.2': { connections: 1, sessionsNow: 1, sessionsPeak: 1 },
    '127.0.0.3': { connections: 2, sessionsNow: 1, sessionsPeak: 1 },
  })
  expect(hosts['mx.a.test']?.clients).toEqual(total.clients)
  expect(total).toMatchObject({ connections: 3, sessionsPeak: 2 })
  await simulator.close()
})

test('a greylist accepts a recipient after its delay', async () => {
  const simulator = await startSimulator({
    domains: {},
    hosts: { 'mx.a.test': { behavior: 'greylist', seconds: 0.05 } },
  })
  const talk = await Talk.with(simulator, 'mx.a.test')
  await talk.reply()
  await talk.say('HELO probe.test')
  await talk.say('MAIL FROM:<>')
  const replies = []
  do replies.push(await talk.say('RCPT TO:<user1@a.test>'))
  while (replies.at(-1)?.startsWith('450'))
  expect(replies[0]).toMatch(/^450 4\.2\.0 /)
  expect(replies.at(-1)).toBe('250 2.1.5 Ok')
  talk.hangUp()
  await simulator.close()
})
