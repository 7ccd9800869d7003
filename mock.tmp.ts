import { startChromium } from './test/dashboard/browser/chromium.ts'
const b = await startChromium()
for (const w of [1280, 390]) for (const n of ['overview', 'list', 'verify']) {
  const p = await b.newPage({ viewport: { width: w, height: 900 } })
  await p.goto(`file:///work/shared/design/mock/${n}.html`)
  await p.screenshot({ path: `/tmp/dash-sheets/mock-${n}-${w}-light.png`, fullPage: true })
  await p.close()
}
await b.close()
