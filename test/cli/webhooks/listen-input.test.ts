import { expect, test } from 'vitest'
import { toListenOptions } from '../../../src/cli/webhooks/listen-input.ts'

test.each([
  [undefined, '127.0.0.1', 'localhost', '127.0.0.1'],
  ['localhost', '127.0.0.1', 'localhost', '127.0.0.1'],
  ['0.0.0.0', '0.0.0.0', 'localhost', '127.0.0.1'],
  ['::1', '::1', '[::1]', '::1'],
  ['127.0.0.2', '127.0.0.2', '127.0.0.2', '127.0.0.2'],
])(
  '--host %s listens on %s, with the host %s in the URL and the IP address %s',
  (host, on, name, dialled) => {
    const flags = host === undefined ? {} : { host }
    expect(toListenOptions(flags, {})).toMatchObject({ host: on, urlHost: name, dialled })
  },
)

test('uses the secret in the environment only if no webhook is created', () => {
  const environment = { EV_WEBHOOK_SECRET: 'whsec_b25l, whsec_dHdv' }
  expect(toListenOptions({ register: true }, environment).secrets).toBeNull()
  expect(toListenOptions({ register: false }, environment).secrets).toEqual([
    'whsec_b25l',
    'whsec_dHdv',
  ])
  expect(() => toListenOptions({ register: false }, { EV_WEBHOOK_SECRET: 'a,' })).toThrow(
    '--no-register',
  )
})

test.each(['192.0.2.7', '10.0.0.1', 'fd00::1', 'shop.example'])(
  'rejects --host %s, to which the service sends no plain HTTP',
  host => {
    expect(() => toListenOptions({ host }, {})).toThrow(
      'sends plain HTTP to loopback addresses only',
    )
  },
)
