import { existsSync, mkdtempSync, readFileSync, renameSync, rmSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import packed from '@sparticuz/chromium'
import { type Browser, chromium } from 'playwright-core'

/** Starts a real browser, which reaches this machine alone. */
export async function startChromium(): Promise<Browser> {
  const executablePath = await unpacked()
  return chromium.launch({ executablePath, args: ARGS })
}

/** As root there is no sandbox; the names of the world need no DNS, and nothing of it is asked. */
const ARGS = [
  ...['--no-sandbox', '--no-zygote', '--disable-dev-shm-usage', '--font-render-hinting=none'],
  '--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost',
]

/** The package has its browser packed; it is unpacked once, and whole before anybody finds it. */
async function unpacked(): Promise<string> {
  const main = createRequire(import.meta.url).resolve('@sparticuz/chromium')
  const { version } = JSON.parse(readFileSync(join(dirname(main), '../package.json'), 'utf8'))
  const folder = join(tmpdir(), `ev-chromium-${version}`)
  if (!existsSync(folder)) {
    const own = mkdtempSync(`${folder}-`)
    const before = process.env.TMPDIR
    // It unpacks to where temporary files go, and nowhere else.
    process.env.TMPDIR = own
    try {
      await packed.executablePath()
    } finally {
      if (before === undefined) delete process.env.TMPDIR
      else process.env.TMPDIR = before
    }
    try {
      renameSync(own, folder)
    } catch {
      // Another test was as fast.
      rmSync(own, { recursive: true, force: true })
    }
  }
  return join(folder, 'chromium')
}
