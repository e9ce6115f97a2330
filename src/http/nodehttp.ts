/**
 * The functions of node:http that src/ uses, taken without importing it: an import evaluates each getter of that
 * module, among them WebSocket's, for which Node loads undici, a tenth of the time of any start.
 */
export const { createServer, request } = process.getBuiltinModule('node:http')
