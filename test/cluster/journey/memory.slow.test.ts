import { afterEach, expect, test } from 'vitest'
import { tempPostgres } from '../../support/database.ts'
import { addressesOf, worldOf } from '../../support/list-world.ts'
import { ProcessCluster, type Unit } from '../../support/process-cluster.ts'

let fleet: ProcessCluster | null = null
afterEach(async () => {
  const faults = await fleet?.close()
  fleet = null
  expect(faults).toEqual([])
})

test('what one server was told all know; what a server used last it has near at hand', {
  timeout: 120_000,
}, async () => {
  const list = { rows: 1, domains: 1 }
  const house = await ProcessCluster.open(await tempPostgres(), {
    scenario: worldOf(list, 0),
    serverArgs: ['--limits', 'off', '--work', 'off'],
  })
  fleet = house
  const [address = ''] = addressesOf(list)
  const [one, other] = [await house.start('serve', 'one'), await house.start('serve', 'other')]
  const third = await house.start('serve', 'third')
  const isCached = async (server: Unit) =>
    (await house.client(server).verify.single({ email: address })).cached
  expect(await isCached(one)).toBe(false)
  await expect.poll(() => house.ask('select 1 from answer')).toHaveLength(1)
  expect(await isCached(other)).toBe(true)
  await house.ask('delete from answer')
  expect([await isCached(one), await isCached(other)]).toEqual([true, true])
  expect(await isCached(third)).toBe(false)
})
