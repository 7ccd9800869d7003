import { execFileSync } from 'node:child_process'
import { lstatSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { lintSource } from '@secretlint/core'
import { creator } from '@secretlint/secretlint-rule-preset-recommend'
import { expect, test } from 'vitest'

const ROOT = join(import.meta.dirname, '..')
const PRESET = '@secretlint/secretlint-rule-preset-recommend'

/** URLs of examples and tests: their hosts are reserved (RFC 2606, RFC 5737), or of this machine. */
const EXAMPLE_URL =
  /^(?:https?|postgres):\/\/\w+:[^@]+@(?:[\w.-]+\.)?(?:example(?:\.com)?|127\.0\.0\.1|192\.0\.2\.\d+|database)(?![\w.-])/

test('no file of the repository contains a secret', async () => {
  const list = execFileSync('git', ['ls-files', '-z'], { cwd: ROOT, encoding: 'utf8' })
  const found: string[] = []
  let scanned = 0
  for (const file of list.split('\0').filter(name => name !== '')) {
    if (!lstatSync(join(ROOT, file)).isFile()) continue
    const bytes = readFileSync(join(ROOT, file))
    // Pictures and other files that are not text.
    if (bytes.includes(0)) continue
    scanned += 1
    const content = bytes.toString()
    const { messages } = await lintSource({
      source: { filePath: join(ROOT, file), content, contentType: 'text' },
      options: { config: { rules: [{ id: PRESET, rule: creator }] }, locale: 'en' },
    })
    for (const { ruleId, range } of messages) {
      const text = content.slice(...range)
      if (!EXAMPLE_URL.test(text)) found.push(`${file} at ${range[0]}: ${ruleId}`)
    }
  }
  expect(scanned).toBeGreaterThan(1_000)
  expect(found).toEqual([])
})

test('a secret would be found', async () => {
  // In parts, because this file is scanned too.
  const url = ['https://ann:', 's3cret@files.other.test'].join('')
  const { messages } = await lintSource({
    source: {
      filePath: join(ROOT, 'example'),
      content: `key = "${'AKIA'}${'QYLPMN5HHHFPZAM2'}"\nurl = ${url}`,
      contentType: 'text',
    },
    options: { config: { rules: [{ id: PRESET, rule: creator }] }, locale: 'en' },
  })
  expect(messages.length).toBeGreaterThan(0)
  expect(url).not.toMatch(EXAMPLE_URL)
})
