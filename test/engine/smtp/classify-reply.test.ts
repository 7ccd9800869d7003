import { describe, expect, test } from 'vitest'
import {
  classifyReply,
  getUncertainty,
  matchRule,
  REPLY_RULES,
  type Stage,
} from '../../../src/engine/smtp/classify-reply.ts'
import { describeOutcome } from '../../../src/engine/smtp/outcome-text.ts'
import type { Reply } from '../../../src/engine/smtp/reply.ts'
import { CLIENT_PHRASES } from '../../../src/engine/smtp/reply-rules/client.ts'
import { BLOCK_PHRASES } from '../../../src/engine/smtp/reply-rules/generic.ts'
import { DAY, HOUR, MINUTE, SECOND } from '../../../src/platform/clock.ts'
import { anyCharacter, fc } from '../../support/property.ts'
import { replyRows } from './reply-fixtures.ts'
import { vocabulary } from './vocabulary.ts'

const rows = replyRows.map(({ file, line, stage, reply, kind, why }) => ({
  file,
  line,
  stage,
  reply,
  means: `${kind}/${why}`,
}))

/** A test for each row would take longer than the rows. */
const files = [...Map.groupBy(rows, ({ file }) => file)]

function reply(code: number, text: string, enhanced: string | null = null) {
  return { code, enhanced, text }
}

const meaning = (stage: Stage, code: number, text: string, enhanced: string | null = null) => {
  const answer = classifyReply(stage, reply(code, text, enhanced))
  return `${answer.kind}/${answer.why}`
}

describe('the rule table', () => {
  test.each(files)('gives each reply of %s its meaning', (_, ofFile) => {
    const read = ofFile.map(({ line, stage, reply, means }) => {
      const { kind, why } = classifyReply(stage, reply)
      return { line, means, is: `${kind}/${why}` }
    })
    expect(read.filter(({ is, means }) => is !== means)).toEqual([])
  })

  test('every rule decides at least one reply of the fixtures', () => {
    const reached = new Set(
      [...rows, ...vocabulary].map(({ stage, reply }) => matchRule(stage, reply)),
    )
    const idle = REPLY_RULES.filter(phrase => !reached.has(phrase))
    expect(
      idle.map(({ meaning, pattern, sentence, enhanced, code }) => [
        ...[meaning, pattern, sentence, enhanced, code],
      ]),
    ).toEqual([])
  })

  test('every rule names its source and provider', () => {
    expect(
      REPLY_RULES.filter(({ source, provider }) => source.length < 3 || provider === ''),
    ).toEqual([])
  })

  test('an enhanced code is matched as a whole, or as a class such as 5.1.x', () => {
    for (const { enhanced } of REPLY_RULES)
      if (enhanced !== undefined) expect(enhanced.source).toMatch(/^\^.*(?:\$|\.)$/)
  })

  test('a basic code is matched as a whole, or as a class such as 4xx', () => {
    for (const { code } of REPLY_RULES)
      if (code !== undefined) expect(code.source).toMatch(/^\^(?:.*\$|(?:\d|\[\d+\]){1,2})$/)
  })

  test('no pattern has flags or backreferences, so that several can be combined', () => {
    const alone = REPLY_RULES.flatMap(({ pattern, sentence }) => pattern ?? sentence ?? []).filter(
      ({ flags, source }) => flags !== '' || /\\[1-9k]|\(\?<\w/.test(source),
    )
    expect(alone).toEqual([])
  })

  test('no pattern has unbounded repetition, so that matching is linear', () => {
    const unbounded = REPLY_RULES.map(({ pattern, sentence }) => pattern ?? sentence).filter(used =>
      /(?<!\\)[*+]|\{\d+,\}/.test(bare(used)),
    )
    expect(unbounded).toEqual([])
  })

  const bare = (pattern: RegExp | undefined) => (pattern?.source ?? '').replace(/\[[^\]]*\]/g, '')
})

describe('a cause on our side is never a dead mailbox', () => {
  const ours = new Set(
    [...CLIENT_PHRASES, ...BLOCK_PHRASES].filter(({ meaning }) => !meaning.startsWith('rejected/')),
  )
  const isAboutUs = ({ reply }: { readonly reply: Reply }) => {
    const phrase = matchRule('rcpt', reply)
    return phrase !== null && ours.has(phrase)
  }
  const aboutUs = rows.filter(isAboutUs)
  const stages: Stage[] = ['greeting', 'ehlo', 'starttls', 'mail', 'rset']

  test('not even with "user unknown" in the same text, in a fixture or in the vocabulary', () => {
    const inVocabulary = vocabulary.filter(isAboutUs)
    expect([aboutUs.length, inVocabulary.length]).not.toContain(0)
    const dead = [...aboutUs, ...inVocabulary].filter(({ reply: { code, enhanced, text } }) =>
      [`${text}; user unknown`, `User unknown. ${text}`].some(both =>
        meaning('rcpt', code, both, enhanced).startsWith('rejected'),
      ),
    )
    expect(dead.map(({ reply }) => reply.text)).toEqual([])
  })

  // 521 in place of a greeting means a host that accepts no mail (RFC 7504 §3).
  const failures = rows.filter(({ reply: { code } }) => code >= 400 && code !== 521)

  test('before RCPT no 4xx or 5xx is evidence about the mailbox', () => {
    const read = failures.flatMap(({ line, reply }) =>
      stages.map(stage => ({ line, stage, kind: classifyReply(stage, reply).kind })),
    )
    expect(
      read.filter(({ kind }) => !['blocked', 'deferred', 'no-response'].includes(kind)),
    ).toEqual([])
  })

  test('only 250, 251 and 252 at RCPT are accepted, or a refusal that confirms the mailbox', () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 999 }), fc.string(), (code, text) => {
        const { kind, why } = classifyReply('rcpt', reply(code, text))
        if (kind === 'accepted' && why !== 'restricted') expect([250, 251, 252]).toContain(code)
        if (code < 400 || code > 599) expect(['accepted', 'no-response']).toContain(kind)
      }),
    )
  })

  test('a 4xx at RCPT is rejected only for a full mailbox or by a provider rule', () => {
    const temporary = [400, 421, 450, 451, 452, 499].flatMap(code =>
      rows.map(row => ({ ...row.reply, code })),
    )
    const rejected = temporary.filter(given => {
      const { kind, why } = classifyReply('rcpt', given)
      return kind === 'rejected' && why !== 'full'
    })
    expect(rejected).not.toEqual([])
    for (const given of rejected) {
      expect(matchRule('rcpt', given)?.code?.test('450'), given.text).toBe(true)
    }
  })

  test('any text at any stage is classified', () => {
    fc.assert(
      fc.property(
        fc.constantFrom<Stage>('greeting', 'ehlo', 'mail', 'rcpt', 'rset'),
        fc.integer({ min: 100, max: 699 }),
        fc.string({ unit: anyCharacter, maxLength: 5_000 }),
        fc.string({ unit: anyCharacter, minLength: 1, maxLength: 64 }),
        (stage, code, text, local) => {
          const recipient = `${local}@x.example`
          for (const said of [text, `${text} "${local}" ${recipient}, ${local} (x.example)`]) {
            const outcome = classifyReply(stage, reply(code, said), { recipient })
            expect(describeOutcome(outcome)).not.toBe('')
          }
        },
      ),
    )
  })
})

describe('how little is known about a refusal', () => {
  test.each<[stage: Stage, code: number, enhanced: string | null, text: string, is: string | null]>(
    [
      // No rule knows a word, and the code leaves open whom it is about.
      ['rcpt', 550, null, 'Reference 4711', 'unknown'],
      ['rcpt', 599, null, 'Reference 4711', 'unknown'],
      ['rcpt', 550, '5.7.1', 'Reference 4711', 'unknown'],
      ['rcpt', 550, '5.3.5', 'Reference 4711', 'unknown'],
      // The only word may be said about anything.
      ['rcpt', 550, null, 'Access denied', 'weak'],
      ['rcpt', 500, null, 'Access denied', 'weak'],
      ['rcpt', 550, null, 'Rejected', 'weak'],
      // The text or the code says what it is about.
      ['rcpt', 550, null, 'No such user', null],
      ['rcpt', 554, null, 'Listed in zen.spamhaus.org', null],
      ['rcpt', 554, '5.7.1', 'Message rejected by policy', null],
      ['rcpt', 550, '5.7.8', 'Reference 4711', null],
      ['rcpt', 550, null, 'System is overloaded', null],
      ['rcpt', 555, null, 'Reference 4711', null],
      ['rcpt', 250, null, 'Ok', null],
      // A 4xx or a text that asks to retry is answered by a retry.
      ['rcpt', 450, null, 'Access denied', null],
      ['rcpt', 450, null, 'Reference 4711', null],
      ['rcpt', 550, null, 'Reference 4711, try again later', null],
      ['rcpt', 550, null, 'Access denied, try again later', null],
      // Before RCPT nothing is said about the recipient.
      ['mail', 550, null, 'Reference 4711', null],
      ['mail', 550, null, 'Access denied', null],
    ],
  )('at %s %i %s %s: %s', (stage, code, enhanced, text, uncertainty) => {
    const answer = classifyReply(stage, reply(code, text, enhanced))
    expect(getUncertainty(answer, 'ann@x.example')).toBe(uncertainty)
  })

  test('the recipient in the text is no word of it', () => {
    const answer = classifyReply('rcpt', reply(550, '<denied@x.example> 4711'), {
      recipient: 'denied@x.example',
    })
    expect(getUncertainty(answer, 'denied@x.example')).toBe('unknown')
  })
})

test.each([
  [550, 'No such user', { kind: 'rejected', why: 'no-mailbox' }],
  [554, 'Blocked by policy, try again in 5 minutes', { kind: 'blocked', why: 'policy' }],
  [450, 'Greylisted', { kind: 'deferred', why: 'greylist', retryAfterMs: null }],
])(
  'an outcome has the stage and the reply, and a delay only if it is deferred: %i %s',
  (code, text, is) => {
    const given = reply(code, text)
    expect(classifyReply('rcpt', given)).toEqual({ ...is, stage: 'rcpt', reply: given })
  },
)

// No code of SMTP, and one that says that the command was not understood.
test.each([600, 555])('a reply %i says nothing, and is quoted on one line', code => {
  const text = `No such\nthing${'.'.repeat(300)}`
  expect(classifyReply('rcpt', reply(code, text))).toEqual({
    kind: 'no-response',
    why: 'garbage',
    stage: 'rcpt',
    detail: expect.stringMatching(new RegExp(`^${code} No such thing\\.{100,200}…?$`)),
  })
})

test.each([
  ['unknown-user.example', 'rejected/no-mail'],
  ['sender.example', 'blocked/sender'],
])('the null MX in a reply with 5.1.0 is that of the named domain, %s', (domain, means) => {
  const text = `Domain ${domain} does not accept mail (nullMX)`
  const recipient = 'ann@unknown-user.example'
  const { kind, why } = classifyReply('rcpt', reply(550, text, '5.1.0'), { recipient })
  expect(`${kind}/${why}`).toBe(means)
})

describe('names in a reply do not change its meaning', () => {
  const about = { recipient: 'spamhaus@unknown-user.example' }
  test.each([
    [
      'a user named after a list',
      550,
      '<spamhaus@unknown-user.example>: User unknown',
      'rejected/no-mailbox',
    ],
    [
      'the same without brackets',
      550,
      'spamhaus@unknown-user.example: no such user',
      'rejected/no-mailbox',
    ],
    ['the same, local part alone', 550, 'mailbox "spamhaus" not found', 'rejected/no-mailbox'],
    [
      'a domain named after a fault',
      554,
      'Access denied for unknown-user.example',
      'blocked/policy',
    ],
    ['a host of that domain', 554, 'mx1.unknown-user.example denied', 'blocked/policy'],
    [
      'and in brackets',
      554,
      'denied <x@no-such-user.example> no-such-user.example',
      'blocked/policy',
    ],
  ])('%s', (_, code, text, means) => {
    const { kind, why } = classifyReply('rcpt', reply(code, text), about)
    expect(`${kind}/${why}`).toBe(means)
  })

  // The local part is a keyword of the reply, so it is masked only where it is the address.
  test.each([
    ['user', 550, 'No such user here', 'rejected/no-mailbox'],
    ['full', 552, 'Mailbox full', 'rejected/full'],
    ['full', 552, '<full@x.test>: mailbox full', 'rejected/full'],
    ['full', 552, 'full@x.test: the mailbox is full', 'rejected/full'],
    ['disabled', 550, 'Account disabled', 'rejected/disabled'],
    ['spamhaus', 550, 'mailbox spamhaus does not exist', 'rejected/no-mailbox'],
    ['a.b+c', 550, 'User a.b+c is unknown', 'rejected/no-mailbox'],
    ['greylisted', 450, 'greylisted, come back later', 'deferred/greylist'],
    ['spamhaus', 554, 'listed by spamhaus', 'blocked/blocklist'],
    ['blacklisted', 550, "mailbox 'blacklisted' does not exist", 'rejected/no-mailbox'],
    ['blacklisted', 550, 'mailbox "Blacklisted": does not exist', 'rejected/no-mailbox'],
    ['blacklisted', 550, '<blacklisted> does not exist', 'rejected/no-mailbox'],
    ['blacklisted', 550, 'blacklisted@x.test: does not exist', 'rejected/no-mailbox'],
  ])('%s@x.test gets %i %s', (local, code, text, means) => {
    const { kind, why } = classifyReply('rcpt', reply(code, text), { recipient: `${local}@x.test` })
    expect(`${kind}/${why}`).toBe(means)
  })
})

describe('a rejection that names this client, and not the recipient, is about the client', () => {
  const client = { mailFrom: 'Check@probe.test', helo: 'MX.probe.test' }
  const recipient = 'ann@a.test'
  const meaningFor = (text: string, about = { recipient, client }, code = 550) => {
    const { kind, why } = classifyReply('rcpt', reply(code, text, '5.1.1'), about)
    return `${kind}/${why}`
  }

  test.each([
    '<check@probe.test>: no such user',
    'no such user: CHECK@Probe.Test.',
    'no such user. Callout failed: from=check@probe.test;',
    'no such user (check@probe.test)',
    'check@probe.test, no such user',
    '<mx.probe.test>: no such user',
  ])('%s', text => {
    expect(meaningFor(text)).toBe('blocked/sender')
  })

  test.each([
    ['neither is named', 'no such user'],
    ['the recipient is named too', '<Ann@A.test>: no such user (from <check@probe.test>)'],
    ['a longer name is', 'no such user at a.mx.probe.test'],
    ['a longer name is', 'no such user in mx.probe.test.example'],
    ['a longer name is', 'no such user in mx.probe.test-a'],
  ])('not if %s: %s', (_, text) => {
    expect(meaningFor(text)).toBe('rejected/no-mailbox')
  })

  test('not if the sender is the null sender', () => {
    const about = { recipient, client: { mailFrom: '', helo: '' } }
    expect(meaningFor('<> : no such user', about)).toBe('rejected/no-mailbox')
  })

  test('not without the recipient or the client', () => {
    const text = '<check@probe.test>: no such user'
    for (const about of [{}, { recipient }, { client }]) {
      const { kind } = classifyReply('rcpt', reply(550, text, '5.1.1'), about)
      expect(kind).toBe('rejected')
    }
  })

  test.each([
    [250, 'ok', 'accepted/recipient'],
    [550, 'blocked by our policy', 'blocked/policy'],
  ])('not if it is no rejection: %d %s', (code, text, means) => {
    expect(meaningFor(`<check@probe.test>: ${text}`, undefined, code)).toBe(means)
  })
})

describe('however a reply writes the recipient, the phrase around it is read', () => {
  const PHRASES: readonly [phrase: string, means: string][] = [
    ['User {} unknown', 'rejected/no-mailbox'],
    ['The recipient {} does not exist', 'rejected/no-mailbox'],
    ['Mailbox {} is not available', 'rejected/no-mailbox'],
    ['No mailbox for {}.', 'rejected/no-mailbox'],
    ['{} User unknown', 'rejected/no-mailbox'],
    ['Mailbox {} is disabled', 'rejected/disabled'],
    ['Account {} has been suspended', 'rejected/disabled'],
    ['Mailbox {} is full', 'rejected/full'],
    ['Access to {} denied', 'blocked/policy'],
  ]
  // The local part and the domain would change the meaning if they were read as words.
  const LOCAL = 'spamhaus'
  const FORMS = [
    ...['{}', '<{}>', '({})', '"{}"', "'{}'", '[{}]', '{{}}', '`{}`', '“{}”', '«{}»', '( {} )'],
    ...[
      '("<{}>")',
      '<<{}>>',
      '&lt;{}&gt;',
      'mailto:{}',
      'smtp:{}',
      '{},',
      ', {},',
      '{}@relay.test',
    ],
  ]
  const meaningFor = (text: string, recipient: string) => {
    const { kind, why } = classifyReply('rcpt', reply(550, text), { recipient })
    return `${kind}/${why}`
  }

  test.each(FORMS)('%s', form => {
    const recipient = `${LOCAL}@blocked.example`
    const spellings = [recipient, recipient.toUpperCase(), 'Spamhaus@Blocked.Example']
    const read = PHRASES.flatMap(([phrase, means]) =>
      spellings.map(spelling => {
        const text = phrase.replace('{}', form.replace('{}', spelling))
        return [text, meaningFor(text, recipient), means]
      }),
    )
    expect(read.filter(([, is, means]) => is !== means)).toEqual([])
  })

  test.each([
    ['with the domain again', 'spamhaus@blocked.example (blocked.example)'],
    ['with a spelled-out at', 'spamhaus at blocked.example'],
    ['with an at in brackets', 'spamhaus [at] blocked.example'],
    ['with the domain in brackets', 'spamhaus (blocked.example)'],
    ['with the domain after a word', 'spamhaus in domain blocked.example'],
    ['percent-encoded', 'spamhaus%40blocked.example'],
    ['as the percent hack', 'spamhaus%blocked.example'],
    ['as a bang path', 'blocked.example!spamhaus'],
    ['as SRS', 'SRS0=HHH=TT=blocked.example=spamhaus@forwarder.example'],
    ['as VERP', 'bounces+spamhaus=blocked.example@lists.example'],
    ['as the local part alone, in brackets', '(spamhaus)'],
    ['as the local part alone, in quotes', '"spamhaus"'],
  ])('%s', (_, written) => {
    const read = PHRASES.filter(([phrase]) => !/^{}|[rs] {}\.|to {}/.test(phrase)).map(
      ([phrase, means]) => {
        const text = phrase.replace('{}', written)
        return [text, meaningFor(text, 'spamhaus@blocked.example'), means]
      },
    )
    expect(read.length).toBeGreaterThan(5)
    expect(read.filter(([, is, means]) => is !== means)).toEqual([])
  })

  test.each([
    ['spamhaus@bücher.example', 'spamhaus@xn--bcher-kva.example'],
    ['spamhaus@xn--bcher-kva.example', 'Spamhaus@BÜCHER.example'],
    ['jürgen.spam@bücher.example', 'jürgen.spam@xn--bcher-kva.example'],
    ["o'spam@x.example", "o'spam@x.example"],
    ['a.spam+b@x.example', 'a.spam%2Bb%40x.example'],
  ])('%s as %s', (recipient, written) => {
    for (const [phrase, means] of PHRASES) {
      const text = phrase.replace('{}', `(${written})`)
      expect([text, meaningFor(text, recipient)]).toEqual([text, means])
    }
  })

  test.each([
    ['domain (x.example) not found', 'rejected/not-hosted'],
    ['domain "x.example" is not local', 'rejected/not-hosted'],
    ['Relay access to [x.example] denied', 'rejected/not-hosted'],
    ['User ann@x.example> unknown', 'rejected/no-mailbox'],
    ['from=probe@other.example unknown sender; to=ann@x.example', 'blocked/sender'],
    // The domain of a contact address is read elsewhere.
    ['5.1.1 Refused: see sorbs.example.net or ask help@sorbs.example.net', 'blocked/blocklist'],
    // A control character in angle brackets is not a name.
    ['no such <LF> expected', 'blocked/policy'],
  ])('%s', (text, means) => {
    expect(meaningFor(text, 'ann@x.example')).toBe(means)
  })
})

test('a local part that is a noun of the rules is not masked as a word', () => {
  const text = 'No such user at x.example'
  const { kind } = classifyReply('rcpt', reply(550, text), { recipient: 'user@x.example' })
  expect(kind).toBe('rejected')
})

describe('the delay that a server requests', () => {
  test.each<[text: string, waitMs: number | null]>([
    ['Greylisted, try again in 300 seconds', 300 * SECOND],
    ['Greylisted for 5 minutes', 5 * MINUTE],
    ['Greylisting: retry in 00:04:30', 4 * MINUTE + 30 * SECOND],
    ['Please try again in 1 hour', HOUR],
    ['try again in 1 hour and 30 minutes', HOUR + 30 * MINUTE],
    ['Greylisted, wait 90s', 90 * SECOND],
    ['Réessayez dans 10 minutes', 10 * MINUTE],
    ['try again after 600 sec', 600 * SECOND],
    ['try again in 40 days', DAY], // The delay is limited to a day.
    ['Greylisted at 2026-01-02T14:30:32Z', null], // A time of day is not a delay.
    ['limit of 10 messages per hour', null], // A rate is not a delay.
    ['try again in 0 seconds', null],
    ['please try again later', null],
  ])('%s', (text, waitMs) => {
    expect(classifyReply('rcpt', reply(450, text))).toMatchObject({
      kind: 'deferred',
      retryAfterMs: waitMs,
    })
  })
})

describe('the text of an outcome', () => {
  const answer = (code: number, text: string) => classifyReply('rcpt', reply(code, text))

  test('names the blocklist', () => {
    expect(describeOutcome(answer(554, 'blocked using zen.spamhaus.org'))).toMatch(
      /^The server blocked the IP address of ev, which is on a blocklist of Spamhaus/,
    )
    expect(describeOutcome(answer(554, 'poor reputation'))).toContain('on a blocklist')
  })

  test('tells when to try again', () => {
    expect(describeOutcome(answer(450, 'Greylisted for 61 seconds'))).toContain('in 2 minutes')
    expect(describeOutcome(answer(450, 'Greylisted for 5 seconds'))).toContain('in 5 seconds.')
    expect(describeOutcome(answer(450, 'Greylisted for 1 hour'))).toContain('in 1 hour.')
    expect(describeOutcome(answer(450, 'Greylisted'))).toContain('Try again later')
  })
})
