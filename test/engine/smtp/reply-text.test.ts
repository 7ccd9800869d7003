import { expect, test } from 'vitest'
import { plainText } from '../../../src/engine/smtp/reply-rules/reply-text.ts'
import { replyRows } from './reply-fixtures.ts'

const plain = (text: string, recipient: string) =>
  plainText({ code: 550, enhanced: null, text }, recipient)

/** The same text with the name in other letters. Such a text is read by itself each time. */
const inCapitals = (text: string, recipient: string) =>
  text.replaceAll(recipient, recipient.toUpperCase())

const RECIPIENTS = [
  'ann.smith@example.com',
  'User@Blocked.example',
  'not-found@sub.spam-list.example',
  'list@spamhaus.test',
  'to@rcpt.test',
]

const PLACES: readonly ((name: string, text: string) => string)[] = [
  (name, text) => `<${name}>: ${text}`,
  (name, text) => `5.1.1 ${name}... ${text}`,
  (name, text) => `${text} (to=${name})`,
  (name, text) => `${text}: "${name}"`,
  (name, text) => `${text} &lt;${name}&gt;, ${name}`,
  (name, text) => `x${name} ${text}`,
  (name, text) => `${name}@relay.test ${text}`,
]

test('a repeated text has the same plain text for each recipient as on its own', () => {
  const different: string[] = []
  for (const [index, { reply }] of replyRows.entries()) {
    const recipient = RECIPIENTS[index % RECIPIENTS.length] ?? ''
    const text = PLACES[index % PLACES.length]?.(recipient, reply.text) ?? ''
    if (plain(text, recipient) !== plain(inCapitals(text, recipient), recipient))
      different.push(text)
  }
  expect(different).toEqual([])
})

test('a text with a word of the recipient has the plain text of that recipient', () => {
  expect(plain('<full@example.com>: mailbox full', 'full@example.com')).toBe('<>: mailbox full')
  expect(plain('user bob is disabled', 'ann@example.com')).toBe('user bob is disabled')
  expect(plain('user bob is disabled', 'bob@example.com')).toBe('user <> is disabled')
})
