import { expect, test } from 'vitest'
import type { ScriptedReply } from '../../support/http-receiver.ts'
import { openReceiver, openTransport, sendOne } from '../../support/https-post.ts'
import { waitUntil } from '../../support/wait.ts'

const TOO_MUCH = 'The server sent too much data.'
const CHUNKED = 'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n'

/** On a clock that does not advance, so that no deadline ends it. */
test.each<[string, ScriptedReply, { status: number | null; fault: string | null }]>([
  ['early hints', { pour: 'HTTP/1.1 103 Early Hints\r\n\r\n' }, { status: null, fault: TOO_MUCH }],
  ['100 Continue', { pour: 'HTTP/1.1 100 Continue\r\n\r\n' }, { status: null, fault: TOO_MUCH }],
  ['blank lines', { pour: '\r\n' }, { status: null, fault: TOO_MUCH }],
  ['a reason phrase', { raw: 'HTTP/1.1 200 ', pour: 'a' }, { status: null, fault: TOO_MUCH }],
  // The status counts, whatever the body does.
  ['a chunk extension', { raw: `${CHUNKED}1;`, pour: 'a' }, { status: 200, fault: null }],
])(
  'a receiver that sends %s is disconnected after a few megabytes',
  async (_, answer, expected) => {
    const { receiver, sending } = await sendOne({ answer })
    const { answer: answered, fault, faultCode } = await sending
    expect(faultCode).toBe(fault === null ? null : 'invalid_response')
    expect({ status: answered?.status ?? null, fault }).toEqual(expected)
    await waitUntil(() => receiver.flooded > 0)
    // The buffers of both sides come on top.
    expect(receiver.flooded).toBeLessThan(64 * 1_024 ** 2)
  },
)

test('a hundred long responses do not reach that limit', async () => {
  const receiver = await openReceiver({ answer: { body: 'x'.repeat(60 * 1_024) } })
  const post = openTransport()
  for (let nth = 0; nth < 100; nth++) {
    expect((await post.to(receiver.url)).answer?.status).toBe(200)
  }
  expect(receiver.connections.opened).toBe(1)
})
