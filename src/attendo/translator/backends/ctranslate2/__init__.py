"""The CTranslate2 backend: conversion, its cache, and decoding."""
