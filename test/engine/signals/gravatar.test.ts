import { createHash } from 'node:crypto'
import { expect, test } from 'vitest'
import { type Address, isFault, parseAddress } from '../../../src/engine/address/address.ts'
import { Gravatar } from '../../../src/engine/signals/gravatar.ts'
import { DAY, HOUR } from '../../../src/platform/clock.ts'
import { silentLog } from '../../../src/platform/log.ts'
import { fakeClock } from '../../support/clock.ts'

const { signal } = new AbortController()

function addressOf(text: string): Address {
  const address = parseAddress(text)
  if (isFault(address)) throw new Error(address.message)
  return address
}

/** Gravatar with scripted statuses; an Error is a failed request. */
function setUp(...statuses: (number | Error)[]) {
  const clock = fakeClock()
  const asked: { url: string; headers: unknown }[] = []
  const warnings: string[] = []
  const gravatar = new Gravatar({
    apiKey: '1234:gk-test',
    clock,
    log: { ...silentLog, warn: message => void warnings.push(message) },
    async getStatus(url, { headers }) {
      asked.push({ url, headers })
      const status = statuses.shift()
      if (status === undefined || status instanceof Error) throw status ?? new Error('not scripted')
      return status
    },
  })
  const find = async (email: string) =>
    (await gravatar.findSignals(addressOf(email), signal)).map(({ shift }) => shift)
  return { clock, asked, warnings, find }
}

test('an address with a profile has a signal; the request has its hash and the key', async () => {
  const { find, asked } = setUp(200)
  expect(await find('Ann@Example.com')).toEqual([-15])
  const hash = createHash('sha256').update('ann@example.com').digest('hex')
  expect(asked).toEqual([
    {
      url: `https://api.gravatar.com/v3/profiles/${hash}`,
      headers: { Authorization: 'Bearer 1234:gk-test', Accept: 'application/json' },
    },
  ])
})

test('an address without one has none, and is asked for once a day', async () => {
  const { find, asked, clock } = setUp(404, 200)
  for (let i = 0; i < 3; i++) expect(await find('ann@example.com')).toEqual([])
  expect(asked).toHaveLength(1)
  await clock.advance(DAY + 1)
  expect(await find('ann@example.com')).toEqual([-15])
})

test.each([[500], [new Error('no connection')]])(
  'a failure (%s) is no signal, and is not remembered',
  async failure => {
    const { find } = setUp(failure, 200)
    expect(await find('ann@example.com')).toEqual([])
    expect(await find('ann@example.com')).toEqual([-15])
  },
)

test.each([429, 401, 403])('after %i nothing is asked for an hour', async status => {
  const { find, asked, clock, warnings } = setUp(200, status, 200)
  await find('known@example.com')
  expect(await find('ann@example.com')).toEqual([])
  expect(await find('bob@example.com')).toEqual([])
  expect(await find('known@example.com')).toEqual([-15])
  expect(asked).toHaveLength(2)
  expect(warnings).toEqual(['Gravatar is not asked for an hour'])
  await clock.advance(HOUR + 1)
  expect(await find('bob@example.com')).toEqual([-15])
})
