import { existsSync, mkdtempSync, readFileSync, renameSync, rmSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import packed from '@sparticuz/chromium'
import { type Browser, chromium } from 'playwright-core'

/** Starts a browser that can reach only this machine. */
export async function startChromium(): Promise<Browser> {
  const executablePath = await unpacked()
  return chromium.launch({ executablePath, args: ARGS })
}

/** Root cannot use the sandbox; no host name is resolved. */
const ARGS = [
  ...['--no-sandbox', '--no-zygote', '--disable-dev-shm-usage', '--font-render-hinting=none'],
  '--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost',
]

/** Unpacks the browser of the package once, atomically. */
async function unpacked(): Promise<string> {
  const main = createRequire(import.meta.url).resolve('@sparticuz/chromium')
  const { version } = JSON.parse(readFileSync(join(dirname(main), '../package.json'), 'utf8'))
  const folder = join(tmpdir(), `ev-chromium-${version}`)
  if (!existsSync(folder)) {
    const own = mkdtempSync(`${folder}-`)
    const before = process.env.TMPDIR
    // The package unpacks only to the directory of temporary files.
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
      // Another test has unpacked it meanwhile.
      rmSync(own, { recursive: true, force: true })
    }
  }
  return join(folder, 'chromium')
}
