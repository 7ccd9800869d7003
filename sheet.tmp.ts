import { startChromium } from './test/dashboard/browser/chromium.ts'
import { existsSync } from 'node:fs'
import { pathToFileURL } from 'node:url'
const [dir, out, suffix, cols, w, h, ...names] = process.argv.slice(2)
const b = await startChromium()
const p = await b.newPage({ viewport: { width: Number(cols) * (Number(w) + 8), height: 600 } })
const imgs = names.map(n => `${dir}/${n}-${suffix}.png`).filter(f => existsSync(f))
import { writeFileSync } from 'node:fs'
writeFileSync(`${out}.html`, `<!doctype html><body style="margin:0;background:#c0c;display:grid;gap:8px;grid-template-columns:repeat(${cols},${w}px)">${imgs.map(f => `<div style="max-height:${h}px;overflow:hidden;font:12px sans-serif;color:#fff">${f.split('/').at(-1)}<br><img src="${pathToFileURL(f)}" style="width:${w}px;display:block"></div>`).join('')}`)
await p.goto(`file://${out}.html`)
await p.waitForLoadState("load")
await p.screenshot({ path: out, fullPage: true })
await b.close()
