import { expect, test } from 'vitest'
import { cluster } from '../../support/cluster-jobs.ts'
import { isRandomRecipient, toRecipients } from '../../support/engine.ts'
import { waitUntil } from '../../support/wait.ts'

const script = toRecipients(to =>
  isRandomRecipient(to) ? '550 5.1.1 No such user' : '250 2.1.5 Ok',
)

test('all servers share a cached answer, and each server also caches what it used last', async () => {
  const home = await cluster({ script, domains: 1 })
  const [one, other, third] = [await home.join(), await home.join(), await home.join()]
  const isCached = async ({ engine }: typeof one) => (await engine.verify('ann@d0.test')).cached
  const answers = () => home.database.db.selectFrom('answer').selectAll().execute()
  expect(await isCached(one)).toBe(false)
  await waitUntil(async () => (await answers()).length === 1)
  expect(await isCached(other)).toBe(true)
  await home.database.db.deleteFrom('answer').execute()
  expect([await isCached(one), await isCached(other)]).toEqual([true, true])
  expect(await isCached(third)).toBe(false)
})
