import { expect, onTestFinished, test } from 'vitest'
import { systemClock } from '../../src/base/clock.ts'
import { createNodeResolver } from '../../src/dns/node-resolver.ts'
import { fakeClock } from '../support/clock.ts'
import { nameServer } from '../support/name-server.ts'

// In real time: node:dns left to itself gives up after 1 s here, as it learned that the server is
// quick.
test('a slow answer after quick ones is waited for', async () => {
  const slow = Promise.withResolvers<void>()
  const server = await nameServer(async ({ name }) => {
    if (name === 'slow.test') await slow.promise
    const data = { preference: 10, exchange: 'mx.a.test' }
    return { answers: [{ type: 'MX', name, data }] }
  })
  onTestFinished(() => server.close())
  const resolver = createNodeResolver({ clock: fakeClock(), servers: [server.address] })
  onTestFinished(() => resolver.close())
  for (let i = 0; i < 10; i++) await resolver.resolve(`quick${i}.test`, 'MX')
  const answer = resolver.resolve('slow.test', 'MX')
  await server.arrived(11)
  systemClock.after(1_300, slow.resolve)
  expect(await answer).toEqual({ records: [{ preference: 10, host: 'mx.a.test' }] })
  expect(server.packets.length).toBe(11)
})
