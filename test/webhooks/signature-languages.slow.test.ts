import { spawnSync } from 'node:child_process'
import { describe, expect, test } from 'vitest'
import { signedHeaders } from '../../src/webhooks/signature.ts'
import { sectionOf } from '../support/markdown.ts'

// The expressions of docs/webhooks.md, in the interpreters that are installed on this machine.

const BODY = '{"event":"webhook.test","data":{"name":"Zoë"}}'
const SECRET = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw'

type Program = {
  readonly language: string
  readonly program: string
  /** Arguments that take body, secret and signature from further ones, and print true or false. */
  readonly args: (expression: string) => readonly string[]
}

const PROGRAMS: readonly Program[] = [
  {
    language: 'PHP',
    program: 'php',
    args: expression => [
      '-r',
      `[, $body, $secret, $signature] = $argv; echo ${expression} ? 'true' : 'false';`,
    ],
  },
  {
    language: 'Python',
    program: 'python3',
    args: expression => [
      '-c',
      `import hmac, sys; _, body, secret, signature = sys.argv; body = body.encode(); print(str(${expression}).lower())`,
    ],
  },
  {
    language: 'Ruby',
    program: 'ruby',
    args: expression => [
      ...['-ropenssl', '-e'],
      `body, secret, signature = ARGV; puts ${expression}`,
    ],
  },
]

const ROW = /^\| (\w+) \| `(.*?)`/gm
const EXPRESSIONS = new Map(
  [...sectionOf('docs/webhooks.md', 'Receiving events').matchAll(ROW)].map(
    ([, language = '', expression = '']) => [language, expression],
  ),
)

const run = (program: string, args: readonly string[]) =>
  spawnSync(program, args, { encoding: 'utf8' })

test('the page has an expression for each language', () => {
  expect([...EXPRESSIONS.keys()]).toEqual(PROGRAMS.map(({ language }) => language))
})

describe.each(PROGRAMS)('the expression for $language', ({ language, program, args }) => {
  const isInstalled = run(program, ['--version']).status === 0

  test.runIf(isInstalled)('accepts the signature of the body, and no other', () => {
    const all = args(EXPRESSIONS.get(language) ?? '')
    const isValid = (signature: string) =>
      run(program, [...all, BODY, SECRET, signature]).stdout.trim()
    const sent = signedHeaders(BODY, { eventId: 'evt_1', at: 0, secrets: [SECRET] })
    const signature = sent['X-EV-Signature'] ?? ''
    expect(isValid(signature)).toBe('true')
    expect(isValid(`${signature.slice(1)}0`)).toBe('false')
    expect(isValid('')).toBe('false')
  })
})
