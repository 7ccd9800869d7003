import { expect, test } from 'vitest'
import { toListenOptions } from '../../../src/cli/listen/webhook-input.ts'

test.each([
  [undefined, '127.0.0.1', 'localhost', '127.0.0.1'],
  ['localhost', '127.0.0.1', 'localhost', '127.0.0.1'],
  ['0.0.0.0', '0.0.0.0', 'localhost', '127.0.0.1'],
  ['::1', '::1', '[::1]', '::1'],
  ['127.0.0.2', '127.0.0.2', '127.0.0.2', '127.0.0.2'],
])(
  'a listener at %s listens on %s, is called %s and is dialled at %s',
  (host, on, name, dialled) => {
    const flags = host === undefined ? {} : { host }
    expect(toListenOptions(flags, {})).toMatchObject({ host: on, urlHost: name, dialled })
  },
)

test('a secret of the environment is used only where no webhook is made', () => {
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
  'no listener is at %s, to which no plain HTTP is sent',
  host => {
    expect(() => toListenOptions({ host }, {})).toThrow(
      'sends plain HTTP to loopback addresses only',
    )
  },
)
