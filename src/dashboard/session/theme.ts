import { Hono } from 'hono'
import { setCookie } from 'hono/cookie'
import type { Env } from '../deps.ts'
import { THEME_COOKIE, THEMES } from '../page/layout.ts'
import { ownPath } from './sign-in.ts'

const YEAR_S = 365 * 24 * 60 * 60

/** Stores the theme in a cookie, so that the first paint already uses it. */
export const themeRoutes = () =>
  new Hono<Env>().post('/theme', async c => {
    const { theme, next } = await c.req.parseBody()
    const chosen = THEMES.find(one => one === theme) ?? 'auto'
    setCookie(c, THEME_COOKIE, chosen, { path: '/', sameSite: 'Strict', maxAge: YEAR_S })
    return c.redirect(ownPath(next), 303)
  })
