-- tenon.lua -- starts tenon lsp for a buffer.  Works from Neovim 0.7 on; shapes at the end of lines need 0.10.
--
--   require("tenon").command = { "/path/to/tenon", "lsp" }     before the first model file, if tenon is not in PATH
--   require("tenon").attached = function(client, buffer) end   called for each buffer, for keys of your own
local tenon = { command = { "tenon", "lsp" }, attached = function() end }
local known = {} -- the client of each command, for Neovim before 0.8

-- Shows the shapes at the end of lines, if this Neovim can.
local function show_shapes(client, buffer)
  if vim.lsp.inlay_hint and client.server_capabilities.inlayHintProvider then
    pcall(vim.lsp.inlay_hint.enable, true, { bufnr = buffer })
  end
end

local function attach(client, buffer)
  vim.bo[buffer].omnifunc = "v:lua.vim.lsp.omnifunc"
  vim.bo[buffer].tagfunc = "v:lua.vim.lsp.tagfunc"
  show_shapes(client, buffer)
  tenon.attached(client, buffer)
end

-- Colours by tree-sitter, if parser/tenon.so is in the run-time path; else syntax/tenon.vim has the colours.
function tenon.colour(buffer)
  if #vim.api.nvim_get_runtime_file("parser/tenon.so", false) == 0 then
    return
  end
  if vim.treesitter.start then
    vim.treesitter.start(buffer, "tenon")
  else
    vim.treesitter.highlighter.new(vim.treesitter.get_parser(buffer, "tenon"), {})
  end
end

function tenon.start(buffer)
  if buffer == 0 then
    buffer = vim.api.nvim_get_current_buf()
  end
  if vim.fn.executable(tenon.command[1]) == 0 then
    vim.notify_once("tenon lsp: there is no program " .. tenon.command[1] .. "; set require('tenon').command")
    return
  end
  local options = { name = "tenon", cmd = tenon.command, root_dir = vim.fn.getcwd(), on_attach = attach }
  if vim.lsp.start then
    vim.lsp.start(options, { bufnr = buffer })
    return
  end
  local key = table.concat(tenon.command, "\n")
  if not (known[key] and vim.lsp.get_client_by_id(known[key])) then
    known[key] = vim.lsp.start_client(options)
  end
  if known[key] then
    vim.lsp.buf_attach_client(buffer, known[key])
  end
end

return tenon
