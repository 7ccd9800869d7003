import { statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { emptyFolder, runEv } from '../../support/cli.ts'

/** A list of 4,000,000 rows then takes 2.4 GB of disk at most. */
const ROW_BYTES_MAX = 600

test('a row of a list takes at most 600 bytes of the database', async () => {
  const [few, many] = [100, 1_100]
  const bytes = (await verify(many)) - (await verify(few))
  expect(bytes / (many - few)).toBeLessThanOrEqual(ROW_BYTES_MAX)
})

/** Verifies a list of this many addresses and returns the size of the database. */
async function verify(count: number): Promise<number> {
  const home = emptyFolder()
  const rows = Array.from({ length: count }, (_, n) => `Ann ${n},ann.${n}@d${n % 50}.example\n`)
  writeFileSync(join(home, 'list.csv'), `name,email\n${rows.join('')}`)
  const { code, stderr } = await runEv(
    ['bulk', 'list.csv', '-o', 'out.csv', '--sandbox', '--data-dir', home],
    { home, offline: true },
  )
  expect(code, stderr).toBe(0)
  return statSync(join(home, 'ev.sqlite')).size
}
