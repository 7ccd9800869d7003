import { expect, test } from 'vitest'
import { welcome } from '../../../../src/cli/webhooks/listener/welcome.ts'
import { wishOf } from '../../../../src/cli/webhooks/listener/wish.ts'

test.each([
  [undefined, '127.0.0.1', 'localhost', '127.0.0.1'],
  ['localhost', '127.0.0.1', 'localhost', '127.0.0.1'],
  ['0.0.0.0', '0.0.0.0', 'localhost', '127.0.0.1'],
  ['::1', '::1', '[::1]', '::1'],
  ['192.0.2.7', '192.0.2.7', '192.0.2.7', '192.0.2.7'],
])(
  'a listener at %s listens on %s, is called %s and is dialled at %s',
  (host, on, name, dialled) => {
    const flags = host === undefined ? {} : { host }
    expect(wishOf(flags, {})).toMatchObject({ host: on, urlHost: name, dialled })
  },
)

test('a secret of the environment is used only where no webhook is made', () => {
  const environment = { EV_WEBHOOK_SECRET: 'whsec_b25l, whsec_dHdv' }
  expect(wishOf({ register: true }, environment).secrets).toBeNull()
  expect(wishOf({ register: false }, environment).secrets).toEqual(['whsec_b25l', 'whsec_dHdv'])
  expect(() => wishOf({ register: false }, { EV_WEBHOOK_SECRET: 'a,' })).toThrow('--no-register')
})

test('a path that a shell would take apart is quoted', () => {
  const authority = { file: "/home/it's me/ca.pem", isNew: false, key: '', cert: '' }
  const said = welcome({ url: 'u', wish: wishOf({}, {}), authority, registration: null })
  expect(said).toContain(`--webhook-ca-file '/home/it'\\''s me/ca.pem'\n`)
})
